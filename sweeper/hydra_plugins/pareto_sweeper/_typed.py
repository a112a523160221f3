"""What was typed: `hydra.sweeper.params` and the command line, one override a key."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
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


def params_in_use(
    params: Mapping[str, Any], arguments: Sequence[str], config: DictConfig
) -> tuple[Mapping[str, Any], str | None]:
    """Return the params that count, and a sentence when the default space does not.

    A command line that names what to search means that, not that and the app's default space as well;
    `space=...` on it asks for both.

    Args:
        params: `hydra.sweeper.params`.
        arguments: The command line's overrides.
        config: Hydra's composed config.
    """
    parser = OverridesParser.create()
    typed = parser.parse_overrides(list(arguments))
    default = config.hydra.runtime.choices.get(_SPACE)
    asked = any(override.key_or_group == _SPACE for override in typed)
    if default is None or asked or not any(override.is_sweep_override() for override in typed):
        return params, None
    prefix = "hydra.sweeper.params."
    # Unresolved: what is typed may refer to what only a trial has, as ${hydra.job.num}.
    texts: Any = OmegaConf.to_container(config.hydra.overrides.hydra, resolve=False)
    by_hand = parser.parse_overrides(texts)
    kept = [o.key_or_group.removeprefix(prefix) for o in by_hand if o.key_or_group.startswith(prefix)]
    flat = flattened(params)
    left = {key: value for key, value in flat.items() if key in kept}
    if len(left) == len(flat):
        return left, None
    return left, f"space={default} is not searched, since the command line names its own; add it to have both"


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
    texts = [
        f"{key}={_param_text(key, value)}" for key, value in _expanded(flattened(params), loader).items()
    ]
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


def _expanded(params: Mapping[str, Any], loader: ConfigLoader | None) -> dict[str, Any]:
    """Return `params` with each `group/*` replaced by the groups it stands for; named ones come first."""
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
