"""What was typed: `hydra.sweeper.params` and the command line, one override a key."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from memsweep.errors import ConfigError

from ._groups import groups_of
from ._overrides import key_of

_SPACE = "space"
_RULES = ("when", "exclude")


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """What counts of `hydra.sweeper`.

    Attributes:
        params: Of its `params`.
        when: Of its `when`.
        exclude: Of its `exclude`.
        note: A sentence where the default space does not count; None where it does.
    """

    params: Mapping[str, Any]
    when: Any
    exclude: Any
    note: str | None = None


def in_use(
    params: Mapping[str, Any], when: Any, exclude: Any, arguments: Sequence[str], config: DictConfig
) -> InUse:
    """Return what counts of the space.

    A command line that names what to search means that, not that and the app's default space as well, nor
    what that space says of its own keys; `space=...` on it asks for both.

    Args:
        params: `hydra.sweeper.params`.
        when: `hydra.sweeper.when`.
        exclude: `hydra.sweeper.exclude`.
        arguments: The command line's overrides.
        config: Hydra's composed config.
    """
    parser = OverridesParser.create()
    typed = parser.parse_overrides(list(arguments))
    default = config.hydra.runtime.choices.get(_SPACE)
    asked = any(override.key_or_group == _SPACE for override in typed)
    if default is None or asked or not any(override.is_sweep_override() for override in typed):
        return InUse(params=params, when=when, exclude=exclude)
    # Unresolved: what is typed may refer to what only a trial has, as ${hydra.job.num}.
    texts: Any = OmegaConf.to_container(config.hydra.overrides.hydra, resolve=False)
    by_hand = [override.key_or_group for override in parser.parse_overrides(texts)]
    prefix = "hydra.sweeper.params."
    kept = [key.removeprefix(prefix) for key in by_hand if key.startswith(prefix)]
    flat = flattened(params)
    left = {key: value for key, value in flat.items() if key in kept}
    is_typed = {name: any(key.startswith(f"hydra.sweeper.{name}") for key in by_hand) for name in _RULES}
    note = f"space={default} is not searched, since the command line names its own; add it to have both"
    return InUse(
        params=left,
        when=when if is_typed["when"] else {},
        exclude=exclude if is_typed["exclude"] else None,
        note=None if len(left) == len(flat) else note,
    )


def collect(
    params: Mapping[str, Any], arguments: Sequence[str], loader: ConfigLoader | None
) -> list[Override]:
    """Return the overrides of `params` and the command line, one a key: the last wins, in the first's place.

    Args:
        params: `hydra.sweeper.params`; a key `group/*` stands for every group below `group`.
        arguments: The command line's overrides, without those of `hydra.`.
        loader: Knows the config groups, for `*` and `glob`.

    Raises:
        ConfigError: If a text cannot be read, or a value is not text.
    """
    texts = [f"{key}={_param_text(key, value)}" for key, value in expanded(params, loader).items()]
    parser = OverridesParser.create(config_loader=loader)
    try:
        overrides = parser.parse_overrides([*texts, *arguments])
    except HydraException as error:
        raise ConfigError(f"hydra.sweeper.params cannot be read: {error}") from error
    by_key: dict[str, Override] = {}
    for override in overrides:
        if override.is_hydra_override():
            raise ConfigError(f"{override.input_line}: what begins with hydra configures the sweep itself")
        by_key[("~" if override.is_delete() else "") + key_of(override)] = override
    return list(by_key.values())


def flattened(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return `params` with nested mappings as dotted keys: Hydra nests `+hydra.sweeper.params.a.b=...`."""
    flat: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping):
            flat.update(flattened(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _param_text(key: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(
        f"hydra.sweeper.params.{key} must be text in Hydra's override grammar, got {value!r}; write "
        f"'choice(a,b)' to try several values, or '[a,b]' in quotes for one value that is a list"
    )


def expanded(nested: Mapping[str, Any], loader: ConfigLoader | None) -> dict[str, Any]:
    """Return `flattened` params with each `group/*` replaced by the groups it stands for; named ones win."""
    params = flattened(nested)
    found: dict[str, Any] = {}
    for key, value in params.items():
        if "*" not in key:
            found[key] = value
            continue
        parent, _, pattern = key.rpartition("/")
        groups = groups_of(loader, parent) if loader is not None and parent else []
        names = sorted(name for name in groups if fnmatch.fnmatch(name, pattern))
        if not names:
            raise ConfigError(f"hydra.sweeper.params: {key} matches no config group")
        found.update({f"{parent}/{name}": value for name in names if f"{parent}/{name}" not in params})
    return found
