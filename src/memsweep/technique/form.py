"""The form of what a YAML file says: mappings, their keys, lists; and which known name was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_PARAMETER = re.compile(r"\$\{([^}]*)\}")


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return `; did you mean lora?` for the known name that is like `name`; empty when none is.

    Args:
        name: What was written.
        known: What there is.
        prefix: What comes before the name where it is written.
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {prefix}{close[0]}?" if close else ""


def only(data: Mapping[str, Any], allowed: Sequence[str], where: str, problems: list[str]) -> None:
    """Add a problem for the keys of `data` that are not `allowed`.

    Args:
        data: A mapping of the file.
        allowed: The keys that it may have.
        where: What it is called in messages.
        problems: Where to add.
    """
    unknown = [str(key) for key in data if key not in allowed]
    if not unknown:
        return
    hint = did_you_mean(unknown[0], allowed) if len(unknown) == 1 else ""
    problem = f"{where} has no key {', '.join(unknown)}" + (hint or f"; it may have {', '.join(allowed)}")
    if any(data[key] is None for key in data if key not in allowed):
        problem += "; within {...} a comma begins a new key: quote a text that holds one"
    problems.append(problem)


def as_list(value: object) -> list[Any]:
    """Return a list as it is, one value as a list of it, nothing as an empty list."""
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def mapping(data: Mapping[str, Any], key: str, problems: list[str]) -> Mapping[str, Any]:
    """Return the mapping at `key`, empty when there is none, and add a problem when it is something else."""
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(f"{key} must be a mapping, got {value!r}")
        return {}
    return value


def expressions(value: object) -> Iterator[str]:
    """Yield the name in every `${name}` within `value`, however deep."""
    if isinstance(value, str):
        yield from _PARAMETER.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from expressions(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from expressions(item)
