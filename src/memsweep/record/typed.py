"""Is what a file holds of the types that its dataclass says?  JSON can hold anything under any name.

A number ends up in a page and in a path, so it must be one.  Nothing is converted: what was written by these
classes is of their types.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_SHOWN = 60
_INFINITE = float(1 << 63)
"""No measure is as large; NumPy takes a whole number beyond it for no number at all."""


def require_types(kind: type, facts: Mapping[str, Any]) -> None:
    """Raise unless each fact is of the type of the field of that name; names without a field are left alone.

    Args:
        kind: A dataclass.
        facts: Field to value, as they are about to be given to it.

    Raises:
        ValueError: With every fact that is not.
    """
    hints = _hints(kind)
    wrong = [
        f"{name} must be {_text(hints[name])}, got {_shown(value)}"
        for name, value in facts.items()
        if name in hints and not _fits(value, hints[name])
    ]
    if wrong:
        raise ValueError("; ".join(wrong))


def require_numbers(facts: Mapping[str, Any], *names: str) -> None:
    """Raise unless each of these, where it is there at all, can number a trial: it is 0 or more.

    Raises:
        ValueError: With the first that cannot.
    """
    for name in names:
        value = facts.get(name)
        if value is not None and value < 0:
            raise ValueError(f"{name} must be at least 0, got {value}")


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    found = typing.get_type_hints(kind)
    return {entry.name: found[entry.name] for entry in dataclasses.fields(kind)}


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind is None or kind is type(None):
        return value is None
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and abs(value) < _INFINITE
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
        )
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(_fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    return isinstance(value, kind)


def _text(kind: Any) -> str:
    text = str(kind) if typing.get_args(kind) else getattr(kind, "__name__", str(kind))
    return text.replace("collections.abc.", "").replace("typing.", "")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
