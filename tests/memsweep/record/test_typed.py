from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from memsweep.record.typed import require_numbers, require_types


class Kind(StrEnum):
    ONE = "one"


@dataclass
class Facts:
    number: int = 0
    share: float = 0.0
    is_it: bool = False
    name: str | None = None
    texts: tuple[str, ...] = ()
    pair: tuple[float, float] = (0.0, 1.0)
    figures: Mapping[str, float] | None = None
    kind: Kind = Kind.ONE
    anything: Any = None


@pytest.mark.parametrize(
    "facts",
    [
        {"number": 3, "share": 3, "is_it": True, "name": "x", "texts": ("a", "b"), "pair": (1, 2.5)},
        {"name": None, "figures": {"a": 1, "b": 2.5}, "kind": Kind.ONE, "anything": {"<": [object]}},
        {"unknown": object()},
    ],
)
def test_what_is_of_its_type_passes(facts: dict[str, Any]) -> None:
    require_types(Facts, facts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", "3"),
        ("number", True),
        ("number", 3.0),
        ("share", "1"),
        ("share", float("nan")),
        ("share", float("inf")),
        ("share", 10**400),
        ("is_it", 1),
        ("name", 3),
        ("texts", ["a"]),
        ("texts", ("a", 1)),
        ("pair", (1.0,)),
        ("figures", {"a": "1"}),
        ("figures", {1: 1.0}),
        ("figures", [1.0]),
        ("kind", "one"),
    ],
)
def test_what_is_of_another_type_is_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be "):
        require_types(Facts, {name: value})


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="number must be int, got '<script>'; share must be float"):
        require_types(Facts, {"number": "<script>", "share": None})


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ValueError, match=r"got 'x{59}\.\.\.$"):
        require_types(Facts, {"number": "x" * 5_000})


def test_a_trial_is_numbered_from_nought() -> None:
    require_numbers({"number": 0, "other": None}, "number", "other", "missing")

    with pytest.raises(ValueError, match="number must be at least 0, got -1"):
        require_numbers({"number": -1}, "number")
