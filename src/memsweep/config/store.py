"""conf/ made known to Hydra: every group option in its ConfigStore, read once.

Why not Hydra's own search path: the files of conf/technique hold prose and rules that no composed config
should carry, a new technique folder must join the defaults list by itself, and a sweep composes a config
for every trial without parsing YAML again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from memsweep.errors import CatalogueError
from memsweep.technique.catalogue import Catalogue, read_catalogue
from memsweep.technique.option import BASELINE
from memsweep.technique.yaml_text import parse_yaml

CONFIG_NAME = "config"
_HEADER = re.compile(r"^#\s*@package\s+(\S+)\s*$", re.MULTILINE)
_TECHNIQUE = "technique"
_ALL = "techniques"
"""The generated config that config.yaml's defaults list names: every technique at its baseline."""
_FREE = {"trainer": "arguments"}
"""Group to the key whose mapping may hold any key: which fields there are, a class of TRL's says."""


def register(conf_folder: Path) -> Catalogue:
    """Store everything under `conf_folder` in Hydra's ConfigStore.

    Args:
        conf_folder: Holds config.yaml and the group folders.

    Returns:
        The techniques found there.

    Raises:
        CatalogueError: If files there cannot be meant; all problems of the techniques at once.
    """
    catalogue = read_catalogue(conf_folder)
    store = ConfigStore.instance()
    for file in sorted(conf_folder.rglob("*.yaml")):
        group = file.parent.relative_to(conf_folder).as_posix()
        if group.split("/")[0] == _TECHNIQUE:
            continue
        node, package = _read(file)
        if group in _FREE:
            node = _open(node, _FREE[group])
        store.store(name=file.stem, node=node, group=None if group == "." else group, package=package)
    for technique in catalogue.techniques.values():
        for option in technique.options.values():
            # Which parameters an option has, the catalogue says: while options are searched, one may be typed
            # that the composed option does not have.
            open_node = OmegaConf.create(
                {"option": option.name, **option.defaults()}, flags={"struct": False}
            )
            store.store(name=option.name, node=open_node, group=f"{_TECHNIQUE}/{technique.name}")
    baselines = {"defaults": [{f"{_TECHNIQUE}/{name}": BASELINE} for name in catalogue.techniques]}
    store.store(name=_ALL, node=baselines)
    return catalogue


def _open(node: dict[str, Any], name: str) -> Any:
    """Return `node` as a config whose mapping `name` takes keys that are not there yet, without a `+`.

    Hydra lets only keys be set that are there.
    """
    config = OmegaConf.create(node)
    if OmegaConf.is_dict(config.get(name)):
        OmegaConf.set_struct(config[name], False)
    return config


def _read(file: Path) -> tuple[dict[str, Any], str | None]:
    """Return what a file holds, and the package that its first comment asks for."""
    text = file.read_text(encoding="utf-8")
    try:
        node = parse_yaml(text)
    except ValueError as error:
        raise CatalogueError(f"{file}: {error}") from error
    if not isinstance(node, dict | None):
        raise CatalogueError(f"{file} must hold a mapping, got {type(node).__name__}")
    header = _HEADER.search(text)
    return node or {}, header.group(1) if header else None
