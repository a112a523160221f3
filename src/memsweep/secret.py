"""What is not to be shown: values of settings that are named like a secret, and texts that look like one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SECRET = re.compile(r"(^|_)(token|secret|password|passwd|api_?key|credentials?)$", re.IGNORECASE)
"""Names of settings whose values are secrets: `HF_TOKEN`, `api_key`; `completion_tokens` is none."""

MASK = "***"

_OF_A_TOKENIZER = re.compile(r"<.*>|\[[A-Z_]+\]")  # pad_token: <pad>
_REFERENCE = re.compile(r"\$\{[^,{}]*\}")  # where a secret is, not what it is
_IN_URL = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+@")
_OF_SERVICES = re.compile(r"\b(hf_|sk-|ghp_|gho_|github_pat_|glpat-|AKIA|xox[abp]-)[A-Za-z0-9_-]{12,}")


def masked(value: Any, name: str = "") -> Any:
    """Return `value` with every secret in it replaced.

    Args:
        value: Plain data.
        name: What it is the value of; a dotted path counts by its last part.
    """
    if isinstance(value, Mapping):
        return {key: masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, name) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if SECRET.search(name.rpartition(".")[2]):
        is_harmless = _OF_A_TOKENIZER.fullmatch(value) or _REFERENCE.fullmatch(value)
        return value if is_harmless else MASK
    return masked_text(value)


def masked_override(text: str) -> str:
    """Return an override, `key=value`, without the secret that it may hold."""
    key, equals, value = text.partition("=")
    return f"{key}{equals}{masked(value, key.lstrip('+~').replace('/', '.'))}"


def masked_text(text: str) -> str:
    """Return a text without what looks like a service's key, or a password within a URL."""
    return _OF_SERVICES.sub(MASK, _IN_URL.sub(rf"\1:{MASK}@", text))
