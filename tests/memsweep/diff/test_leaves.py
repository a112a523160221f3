from __future__ import annotations

from typing import Any

import pytest

from memsweep.diff.leaves import Kind, compared, flattened, shown
from memsweep.technique.yaml_text import parse_yaml


def kinds(old: str, new: str) -> dict[str, str]:
    """Return path to what happened, of two YAML texts."""
    found = compared(flattened(parse_yaml(old)), flattened(parse_yaml(new)))
    return {change.path: change.kind.value for change in found}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a: 1\nb: 2\n", "b: 2   # a comment\na: 1\n"),
        ("lr: 1e-4", "lr: 0.0001"),
        ("lr: 1.0e-4", "lr: 1e-4"),
        ("a: {b: 1, c: [1, 2]}", "a:\n  c:\n    - 1\n    - 2\n  b: 1\n"),
        ("a: 'text'", 'a: "text"'),
        ("a: null", "a: ~"),
        ("a: .nan", "a: .NaN"),
    ],
)
def test_what_only_looks_otherwise_is_no_change(old: str, new: str) -> None:
    assert kinds(old, new) == {}


@pytest.mark.parametrize(
    ("old", "new"), [("a: 1", "a: '1'"), ("a: true", "a: 'true'"), ("a: 1", "a: true"), ("a: 1", "a: 1.0")]
)
def test_another_type_is_a_change_of_type(old: str, new: str) -> None:
    assert kinds(old, new) == {"a": "retyped"}


def test_added_removed_and_changed_leaves_are_told_apart() -> None:
    assert kinds("a: 1\nb: {c: 2}", "a: 3\nd: {}") == {"a": "changed", "b.c": "removed", "d": "added"}


def test_null_is_a_value_and_no_type() -> None:
    assert kinds("a: null\nb: 1", "a: 1") == {"a": "changed", "b": "removed"}


def test_a_list_is_one_value_whose_order_counts() -> None:
    assert kinds("a: [1, 2]", "a: [2, 1]") == {"a": "changed"}


def test_ignored_paths_do_not_count() -> None:
    old, new = {"a": 1, "tracking.mode": "x"}, {"a": 2, "tracking.mode": "y"}

    assert [change.path for change in compared(old, new, lambda path: path.startswith("tracking"))] == ["a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        ("1", '"1"'),
        (True, "true"),
        ("true", '"true"'),
        (0.0001, "0.0001"),
        ("lora", "lora"),
        ("", '""'),
        (None, "null"),
        ("null", '"null"'),
        ("a\nb", '"a\\nb"'),
        ([1, "x"], '[1, "x"]'),
        ("${oc.env:HOME}", "${oc.env:HOME}"),
    ],
)
def test_values_are_shown_so_that_their_types_show(value: Any, expected: str) -> None:
    assert shown(value) == expected


def test_a_changed_secret_is_a_change_that_shows_neither_value() -> None:
    (change,) = compared({"hub.token": "old-one"}, {"hub.token": "new-one"})

    assert change.kind is Kind.CHANGED
    assert (change.text(change.old), change.text(change.new)) == ("***", "***")
    assert "one" not in str(change.to_mapping())
