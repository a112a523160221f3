"""What an object is, as data that JSON takes: stable between processes, without addresses."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any

import torch


def plain(value: Any) -> Any:
    """Return `value` as JSON-ready data; what has no such form, by its name without an address."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if isinstance(value, torch.dtype | torch.device):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, functools.partial):
        return [plain(value.func), *(plain(item) for item in value.args), plain(value.keywords)]
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return getattr(value, "__qualname__", type(value).__qualname__)


def simple_fields(holder: Any) -> dict[str, Any]:
    """Return the attributes of `holder` that are numbers, text, truth values or nothing."""
    return {
        name: value
        for name, value in sorted(getattr(holder, "__dict__", {}).items())
        if isinstance(value, bool | int | float | str) or value is None
    }


def digest(data: Any) -> str:
    """Return a hash of JSON-ready data: 16 hexadecimal digits."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def short(dtype: Any) -> str:
    """Return a number type's name without the library's."""
    return str(dtype).removeprefix("torch.")
