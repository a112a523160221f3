"""The techniques of a request: each is a config group, `technique/adapter=lora`; only parameters are keys.

A dot for the slash is easily typed.  Hydra then puts the word where the option's node belongs, or another
option's name into it: the trial would have that option's name and none of its parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from memsweep.errors import ConfigError
from memsweep.technique.option import BASELINE

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_NODE, _GROUP, _OPTION = "technique.", "technique/", "option"
_WHICH = "technique holds the groups, and is none: type technique/<technique>=<option>"


def technique_nodes(composed: object) -> dict[str, dict[str, Any]]:
    """Return technique to its composed node: `option`, and the option's parameters.

    Args:
        composed: What a composed config has at `technique`.

    Raises:
        ConfigError: For every technique that has something else than a node.
    """
    if composed is not None and not isinstance(composed, Mapping):
        raise ConfigError(_WHICH)
    nodes = composed or {}
    problems = [_to_type(name, node) for name, node in nodes.items() if not isinstance(node, Mapping)]
    if problems:
        raise ConfigError("\n".join(problems))
    return {str(name): dict(node) for name, node in nodes.items()}


def require_groups(overrides: Iterable[Override], techniques: Collection[str]) -> None:
    """Raise if a technique's option is typed as if it were a key: `technique.adapter=lora`.

    Args:
        overrides: What was typed, as Hydra parses it.
        techniques: The names of the techniques.

    Raises:
        ConfigError: For all such overrides, with what to type instead.
    """
    problems = []
    for override in overrides:
        if f"{override.key_or_group}." == _NODE:
            problems.append(_WHICH)
        options = override.value()
        if override.key_or_group.startswith(_GROUP) and isinstance(options, list):
            problems.append(
                f"{override.input_line} names several options: type one, or to try them -m "
                f"{override.key_or_group}={','.join(map(str, options))}"
            )
        name = override.key_or_group.removeprefix(_NODE).removesuffix(f".{_OPTION}")
        if override.key_or_group.startswith(_NODE) and name in techniques:
            problems.append(_to_type(name, _value(override)))
    if problems:
        raise ConfigError("\n".join(problems))


def _value(override: Override) -> Any:
    if override.is_sweep_override():
        return str(override.input_line).partition("=")[2]
    value = override.value()
    return value.get(_OPTION) if isinstance(value, Mapping) else value


def _to_type(technique: str, value: object) -> str:
    option = value if isinstance(value, str) and value else BASELINE
    return f"{_NODE}{technique} is a group: type technique/{technique}={option}"
