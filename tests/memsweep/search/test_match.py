"""What a value must be, as `when` and `exclude` say it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsweep.search.match import read_match, same_value

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("node", "met", "unmet"),
    [
        ("sgd", ["sgd"], ["adam", None]),
        (["sgd", "adam"], ["sgd", "adam"], ["other", ["sgd", "adam"]]),
        ([[1, 2]], [[1, 2]], [1, [1, 2.0]]),
        ({"at_least": 8}, [8, 8.5], [7, "9", True, None]),
        ({"at_most": 8}, [8, -1.0], [8.5, False]),
        ({"at_least": 2, "at_most": 3}, [2, 3], [1, 4]),
        ({"not": "sgd"}, ["adam", None, 1], ["sgd"]),
        ({"not": [1, 2]}, [3, 1.0, "1"], [1, 2]),
        ({"not": 4, "at_least": 2}, [2, 5], [4, 1]),
    ],
)
def test_a_demand_is_met_by_these_and_not_by_those(node: Any, met: list[Any], unmet: list[Any]) -> None:
    match = read_match(node)

    assert [match.holds(value) for value in met] == [True] * len(met)
    assert [match.holds(value) for value in unmet] == [False] * len(unmet)


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (1, "1"), (None, "null"), ([1], [True]), ({"a": 1}, {"a": 1.0})]
)
def test_equal_values_of_different_types_are_different(one: Any, other: Any) -> None:
    assert not read_match([one]).holds(other)
    assert not read_match([other]).holds(one)


def test_options_of_a_group_are_text_whatever_they_look_like() -> None:
    match = read_match([1, "large"], of_options=True)

    assert [match.holds(value) for value in (1, "1", "large", 2)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ([], "at least one value"),
        ({}, "takes a value, a list of values, or a mapping"),
        ({"above": 3}, "takes a value, a list of values, or a mapping"),
        ({"at_least": "8"}, "at_least takes a number, got '8'"),
        ({"at_most": True}, "at_most takes a number, got True"),
        ({"at_least": 3, "at_most": 2}, "no number is at least 3 and at most 2"),
        ({"not": []}, "at least one value"),
    ],
)
def test_what_is_no_demand_is_refused(node: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_match(node)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (["a", "1"], "key=a or '1'"),
        ({"not": ["a", None]}, "key other than a and null"),
        ({"at_least": 2, "at_most": 3.5}, "key at least 2 and key at most 3.5"),
    ],
)
def test_a_demand_reads_as_it_would_be_typed(node: Any, text: str) -> None:
    assert read_match(node).text("key") == text


@given(VALUES, VALUES)
def test_values_are_the_same_exactly_if_type_and_content_are(one: Any, other: Any) -> None:
    assert same_value(one, one)
    assert same_value(one, other) == (identity(one) == identity(other))


def identity(value: Any) -> Any:
    if isinstance(value, list):
        return ("list", tuple(map(identity, value)))
    if isinstance(value, dict):
        return ("dict", frozenset((key, identity(item)) for key, item in value.items()))
    if isinstance(value, float) and math.isnan(value):
        return ("float", "nan")
    return (type(value).__name__, value)
