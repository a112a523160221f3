"""What is not to be shown: values of settings that are named like a secret, and texts that look like one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

SECRET = re.compile(
    r"(^|_)(token|secret|password|passwd|api_?key|(access|private|signing)_?key|credentials?)$", re.IGNORECASE
)
"""Names of settings whose values are secrets: `HF_TOKEN`, `api_key`; `completion_tokens` is none."""

MASK = "***"

_VARIABLE = re.compile(
    r"(^|_)(token|secret|credentials?)(_|$)|passw(or)?d|(^|_)(key|pat|auth)$|._pwd$|api_?key|access_key",
    re.IGNORECASE,
)

_OF_A_TOKENIZER = re.compile(r"<.*>|\[[A-Z_]+\]")  # pad_token: <pad>
_REFERENCE = re.compile(r"\$\{[^,{}]*\}")  # where a secret is, not what it is
_PASSWORD = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")
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


def is_secret_variable(name: str) -> bool:
    """Tell whether a variable is named like a secret: `PGPASSWORD` is, `TOKENIZERS_PARALLELISM` is not."""
    return _VARIABLE.search(name) is not None


def without_password(text: str, url: str) -> str:
    """Return a text without the password that a URL holds, wherever it stands: in what a driver says, say."""
    found = _PASSWORD.search(url)
    written = {found[1], unquote(found[1])} if found is not None else set()
    for password in sorted(written, key=len, reverse=True):
        text = text.replace(password, MASK)
    return masked_text(text)
