"""Which field of a config class is meant by a setting?

Library generations name the same thing differently; a setting may hold several names, separated by `|`, and
the first that the installed class has is meant.  The class's fields decide, never a version.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Mapping
from typing import Any

from memsweep.errors import ConfigError


def field_names(config_class: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields that its constructor takes."""
    return tuple(entry.name for entry in dataclasses.fields(config_class) if entry.init)


def field_for(setting: str, config_class: Any) -> str:
    """Return the field of `config_class` that `setting` means.

    Args:
        setting: A name, or names of several generations: `activation_checkpointing|gradient_checkpointing`.
        config_class: A dataclass.

    Raises:
        ConfigError: If the class has none of the names; it says what the class has.
    """
    there = field_names(config_class)
    names = setting.split("|")
    for name in names:
        if name in there:
            return name
    near = difflib.get_close_matches(names[0], there, n=3)
    own = [name for name in inspect.get_annotations(config_class) if name in there]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ConfigError(
        f"{config_class.__name__} has no field {' or '.join(names)}; {hint}"
        f"its own fields: {', '.join(sorted(own))}; and {len(there) - len(own)} of the classes it extends"
    )


def resolved(settings: Mapping[str, Any], config_class: Any) -> dict[str, Any]:
    """Return `settings` under the names that `config_class` has.

    Raises:
        ConfigError: For all settings without a field at once, and for two settings that mean one field.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for setting, value in settings.items():
        try:
            name = field_for(setting, config_class)
        except ConfigError as error:
            problems.append(str(error))
            continue
        if name in values:
            problems.append(f"two settings mean {config_class.__name__}.{name}; keep one")
        values[name] = value
    if problems:
        raise ConfigError("\n".join(problems))
    return values
