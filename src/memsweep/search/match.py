"""What a value must be: the language of `hydra.sweeper.when` and `hydra.sweeper.exclude`.

sgd                  that value
[sgd, nesterov]      one of them; a value that is itself a list is written within a list
{at_least: 8}        a number, at least that; {at_most: 8} and both together likewise
{not: sgd}           any other value; a list names several

Values are compared with their types, as Hydra reads them: 1 is neither 1.0 nor '1' nor true.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsweep.search.grammar import label_text

AT_LEAST, AT_MOST, NOT = "at_least", "at_most", "not"
WORDS = frozenset({AT_LEAST, AT_MOST, NOT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A demand on one value.

    Attributes:
        among: It is one of these; None if any is as good.
        other_than: It is none of these.
        at_least: It is a number no smaller; None for no such bound.
        at_most: It is a number no larger; None for no such bound.
        of_options: It is an option of a config group, whose name is text whatever it looks like.
    """

    among: tuple[Any, ...] | None = None
    other_than: tuple[Any, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    of_options: bool = False

    def holds(self, value: Any) -> bool:
        """Tell whether `value` meets the demand."""
        if self.of_options:
            value = _option(value)
        if self.has_bounds and not _is_number(value):
            return False
        return (
            (self.among is None or any(same_value(value, one) for one in self.among))
            and not any(same_value(value, one) for one in self.other_than)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )

    @property
    def has_bounds(self) -> bool:
        """Whether only a number can meet it."""
        return self.at_least is not None or self.at_most is not None

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that it names."""
        return (*(self.among or ()), *self.other_than)

    def text(self, key: str) -> str:
        """Return the demand on `key` in words."""
        parts = []
        if self.among is not None:
            parts.append(f"{key}={' or '.join(map(label_text, self.among))}")
        if self.other_than:
            parts.append(f"{key} other than {' and '.join(map(label_text, self.other_than))}")
        parts += [] if self.at_least is None else [f"{key} at least {label_text(self.at_least)}"]
        parts += [] if self.at_most is None else [f"{key} at most {label_text(self.at_most)}"]
        return " and ".join(parts)


def read_match(node: Any, *, of_options: bool = False) -> Match:
    """Return the demand that a node of a config states.

    Args:
        node: A value, a list of values, or a mapping as in this module's table.
        of_options: The values are options of a config group.

    Raises:
        ValueError: If it states none; the message says what is on offer, to follow the key.
    """
    if not isinstance(node, Mapping):
        return Match(among=_values(node, of_options), of_options=of_options)
    unknown = [str(word) for word in node if word not in WORDS]
    if unknown or not node:
        raise ValueError(
            f"takes a value, a list of values, or a mapping of at_least, at_most and not; got {dict(node)!r}"
        )
    bounds = {word: node[word] for word in (AT_LEAST, AT_MOST) if word in node}
    for word, bound in bounds.items():
        if not _is_number(bound) or math.isnan(bound):
            raise ValueError(f"{word} takes a number, got {bound!r}")
    if len(bounds) == 2 and bounds[AT_LEAST] > bounds[AT_MOST]:
        raise ValueError(f"no number is at least {bounds[AT_LEAST]} and at most {bounds[AT_MOST]}")
    other_than = _values(node[NOT], of_options) if NOT in node else ()
    return Match(other_than=other_than, of_options=of_options, **bounds)


def same_value(one: Any, other: Any) -> bool:
    """Tell whether two values are equal and of one type, and so is all that they hold."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, dict):
        return _typed_keys(one) == _typed_keys(other) and all(same_value(one[key], other[key]) for key in one)
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def _typed_keys(mapping: Mapping[Any, Any]) -> set[tuple[type, Any]]:
    return {(type(key), key) for key in mapping}


def _values(node: Any, of_options: bool) -> tuple[Any, ...]:
    values: Sequence[Any] = node if isinstance(node, list) else [node]
    if not values:
        raise ValueError("takes at least one value, got an empty list")
    return tuple(_option(value) for value in values) if of_options else tuple(values)


def _option(value: Any) -> Any:
    if isinstance(value, list):
        return [_option(one) for one in value]
    return value if value is None else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
