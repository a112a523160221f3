"""Configs that were composed before: what a trial was given, what was in force in it, and other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memsweep.config.groups import technique_nodes
from memsweep.diff.entry import Entry, entry_of_config
from memsweep.diff.leaves import flattened
from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder, read_json
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.option import BASELINE
from memsweep.technique.yaml_text import read_yaml


def is_baseline(folder: TrialFolder) -> bool:
    """Tell whether a trial chose every technique's baseline."""
    try:
        nodes = technique_nodes(read_config(folder.config).get("technique"))
    except ConfigError:
        return False
    return bool(nodes) and all(node.get("option") == BASELINE for node in nodes.values())


def entry_of_trial(folder: TrialFolder, catalogue: Catalogue | None) -> Entry:
    """Return what a trial was given, and what was in force.

    Args:
        folder: The trial's.
        catalogue: Knows what its techniques set; None where there is none.

    Raises:
        ConfigError: If a file there cannot be read.
    """
    in_force = None
    if folder.effective.exists():
        try:
            in_force = flattened(read_json(folder.effective))
        except ValueError as error:
            raise ConfigError(str(error)) from error
    choices = _choices(folder.path / ".hydra" / "hydra.yaml")
    return entry_of_config(read_config(folder.config), catalogue, choices, in_force)


def entry_of_file(path: Path, catalogue: Catalogue | None) -> Entry:
    """Return what a config file holds.

    Raises:
        ConfigError: If it cannot be read.
    """
    return entry_of_config(read_config(path), catalogue)


def read_config(path: Path) -> Mapping[str, Any]:
    """Return the mapping that a YAML file holds.

    Raises:
        ConfigError: If it cannot be read, or holds something else.
    """
    try:
        data = read_yaml(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as a config: {error}") from error
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path} must hold a mapping, got {type(data).__name__}")
    return data


def _choices(file: Path) -> dict[str, str]:
    """Return which option of each group Hydra recorded; empty where it recorded none."""
    try:
        node: Any = read_config(file)["hydra"]["runtime"]["choices"]
        return {str(group): str(option) for group, option in node.items() if option is not None}
    except (ConfigError, KeyError, TypeError, AttributeError):
        return {}
