"""Plain data made into dataclasses of their declared types, every problem in it reported at once."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any, TypeVar

from memsweep.errors import ConfigError
from memsweep.technique.form import did_you_mean

T = TypeVar("T")


def from_mapping(kind: type[T], data: Mapping[str, Any], where: str = "") -> T:
    """Return `data` as a `kind`, every problem in it reported at once.

    Args:
        kind: A dataclass; its fields may be dataclasses in turn.
        data: Plain mappings and values, as `OmegaConf.to_container` gives them.
        where: Dotted path of `data` in the whole config, for messages.

    Raises:
        ConfigError: For unknown and missing keys, wrong types, and what a class refuses.
    """
    problems: list[str] = []
    value = _convert(kind, data, where, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    return typing.cast(T, value)


def _convert(kind: Any, value: Any, where: str, problems: list[str]) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (kind,) = [argument for argument in arguments if argument is not type(None)]
        return _convert(kind, value, where, problems)
    if is_dataclass(kind):
        return _convert_dataclass(kind, value, where, problems)
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(value, Mapping):
            problems.append(f"{where} must be a mapping, got {value!r}")
            return {}
        return {str(k): _convert(arguments[1], v, f"{where}.{k}", problems) for k, v in value.items()}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(value)
        except ValueError:
            problems.append(f"{where} must be one of {', '.join(kind)}, got {value!r}")
            return None
    return _convert_scalar(kind, value, where, problems)


def _convert_scalar(kind: type, value: Any, where: str, problems: list[str]) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    problems.append(f"{where} must be {kind.__name__}, got {value!r}")
    return value


def _convert_dataclass(kind: Any, value: Any, where: str, problems: list[str]) -> Any:
    if not isinstance(value, Mapping):
        problems.append(f"{where or 'the config'} must be a mapping, got {value!r}")
        return None
    hints = typing.get_type_hints(kind)
    known = {entry.name: entry for entry in fields(kind)}
    prefix = f"{where}." if where else ""
    count = len(problems)
    problems.extend(
        f"{prefix}{key} is not a setting"
        + (did_you_mean(str(key), known, prefix) or f"; allowed here: {', '.join(known)}")
        for key in value
        if key not in known
    )
    converted = {}
    for name, entry in known.items():
        if name in value:
            converted[name] = _convert(hints[name], value[name], prefix + name, problems)
        elif entry.default is MISSING and entry.default_factory is MISSING:
            problems.append(f"{prefix}{name} is missing")
    if len(problems) > count:
        return None
    try:
        return kind(**converted)
    except ConfigError as error:
        problems.append(str(error))
        return None
