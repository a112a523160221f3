"""Which adapter does a trial train?

The adapter seam names PEFT's method by `type` and sets fields of that method's config class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from peft import PEFT_TYPE_TO_CONFIG_MAPPING

from memsweep.errors import ConfigError
from memsweep.trainers.fields import resolved


def adapter_config(settings: Mapping[str, Any], task_type: str) -> Any | None:
    """Return PEFT's config for the adapter seam, None when the whole model is trained.

    Args:
        settings: The seam: `type` and fields of that type's config class.
        task_type: What PEFT calls what the model is for.

    Raises:
        ConfigError: If PEFT has no such method, or the method no such field.
    """
    if not settings:
        return None
    types = {str(kind.value).lower(): kind for kind in PEFT_TYPE_TO_CONFIG_MAPPING}
    name = str(settings.get("type", "")).lower()
    if name not in types:
        raise ConfigError(
            f"the adapter seam's type must be one of {', '.join(sorted(types))}, got {name or 'none'}"
        )
    config_class = PEFT_TYPE_TO_CONFIG_MAPPING[types[name]]
    values = resolved({key: value for key, value in settings.items() if key != "type"}, config_class)
    return config_class(**values, task_type=task_type)


def adapter_facts(config: Any) -> dict[str, Any]:
    """Return the fields of a PEFT config as JSON-ready data."""
    return {
        entry.name: _plain(getattr(config, entry.name)) for entry in dataclasses.fields(config) if entry.repr
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset | list | tuple):
        items = [_plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
