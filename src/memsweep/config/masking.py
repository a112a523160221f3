"""What Hydra writes down of a config, without the secrets in it.

Beside each trial Hydra leaves config.yaml, hydra.yaml and overrides.yaml, beside a sweep multirun.yaml.  A
storage's URL with its password is in them, and a key that somebody typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core import utils
from omegaconf import OmegaConf

from memsweep.secret import masked, masked_override

_OVERRIDE = re.compile(r"[~+]*[\w./@-]+=")


def masked_yaml(config: Any) -> str:
    """Return a config as YAML, as Hydra writes it, with its secrets replaced."""
    data: Any = OmegaConf.to_container(config, resolve=False, enum_to_str=True)
    found = _masked(data)
    return OmegaConf.to_yaml(config if found == data else OmegaConf.create(found))


@contextmanager
def secrets_masked() -> Iterator[None]:
    """Have what Hydra writes down within the block pass `masked_yaml`.

    Source: hydra-core==1.3.8 core/utils.py, run_job, which has no say in what it saves.
    """
    original = utils._save_config

    def save(cfg: Any, filename: str, output_dir: Path) -> None:
        output_dir.mkdir(parents=True, exist_ok=True)
        (output_dir / filename).write_text(masked_yaml(cfg), encoding="utf-8")

    utils._save_config = save
    try:
        yield
    finally:
        utils._save_config = original


def _masked(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, name) for item in value]
    if isinstance(value, str) and _OVERRIDE.match(value):
        return masked_override(value)
    return masked(value, name)
