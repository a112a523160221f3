"""A configuration as its leaves, and what is different between two of them.

A leaf is a value that is no mapping: a list is one leaf, and so is an empty mapping.  Leaves are compared
with their types, as JSON writes them: 1, 1.0, "1" and true are four values, while 1e-4 and 0.0001 are one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memsweep.secret import MASK, masked

Leaves = Mapping[str, Any]
"""Dotted path to value."""


class Kind(StrEnum):
    """What happened to a leaf."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RETYPED = "retyped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One leaf that is not the same on both sides.

    Attributes:
        path: Where it is, dotted.
        old: Its value on the first side, as JSON; None where it is not there.
        new: The same of the second side.
    """

    path: str
    old: str | None
    new: str | None

    @property
    def kind(self) -> Kind:
        """What happened to it; null, and what is looked up elsewhere, have no type of their own."""
        if self.old is None or self.new is None:
            return Kind.ADDED if self.old is None else Kind.REMOVED
        old, new = json.loads(self.old), json.loads(self.new)
        are_typed = not any(
            value is None or (isinstance(value, str) and "${" in value) for value in (old, new)
        )
        return Kind.RETYPED if are_typed and type(old) is not type(new) else Kind.CHANGED

    def text(self, json_text: str | None) -> str:
        """Return one of the values as people read it, without secrets."""
        return "" if json_text is None else shown(json.loads(json_text), self.path)

    @property
    def types(self) -> str:
        """The types of both values, where that is what is different: `int -> str`."""
        if self.kind is not Kind.RETYPED or self.old is None or self.new is None:
            return ""
        return " -> ".join(_NAMES[type(json.loads(text))] for text in (self.old, self.new))

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data, without secrets."""
        data: dict[str, Any] = {"path": self.path, "kind": self.kind.value}
        for name, text in (("old", self.old), ("new", self.new)):
            if text is not None:
                data[name] = masked(json.loads(text), self.path)
        return data


_NAMES: Mapping[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "list",
    dict: "mapping",
    type(None): "null",
}


def flattened(node: Any, prefix: str = "") -> dict[str, Any]:
    """Return the leaves of plain data.

    Args:
        node: Mappings, lists and values.
        prefix: What comes before each path.
    """
    return dict(_leaves(node, prefix))


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(node, Mapping) or (not node and path):
        yield path, node
        return
    for key, value in node.items():
        yield from _leaves(value, f"{path}.{key}" if path else str(key))


def json_text(value: Any) -> str:
    """Return `value` as the text that it is compared by."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def compared(
    old: Leaves, new: Leaves, is_ignored: Callable[[str], bool] = lambda _: False
) -> tuple[Change, ...]:
    """Return what is different between two sides, sorted by path.

    Args:
        old: The first side.
        new: The second side.
        is_ignored: Told a path, whether it does not count.
    """
    found = []
    for path in sorted({*old, *new}):
        texts = [json_text(side[path]) if path in side else None for side in (old, new)]
        if texts[0] != texts[1] and not is_ignored(path):
            found.append(Change(path=path, old=texts[0], new=texts[1]))
    return tuple(found)


_LOOKS_OTHERWISE = ("", "true", "false", "null", "~", "yes", "no", "on", "off")


def shown(value: Any, path: str = "") -> str:
    """Return a value as it is written in YAML, in one line; text that looks like something else in quotes.

    Args:
        value: Plain data.
        path: What it is the value of: what is named like a secret is not shown.
    """
    safe = masked(value, path)
    if isinstance(safe, str):
        return safe if safe == MASK or not _needs_quotes(safe) else json.dumps(safe, ensure_ascii=False)
    return json.dumps(safe, ensure_ascii=False, default=str)


def _needs_quotes(text: str) -> bool:
    if text.lower() in _LOOKS_OTHERWISE or text != text.strip() or not text.isprintable():
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
