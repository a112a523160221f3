from __future__ import annotations

import pytest

from memsweep.technique.option import Condition, Parameter, one_of


@pytest.mark.parametrize(
    ("default", "value", "problem"),
    [
        (16, 8, None),
        (16, 8.0, "must be int, got 8.0"),
        (16, True, "must be int, got True"),
        (0.5, 1, None),
        (0.5, "1", "must be float, got '1'"),
        (True, False, None),
        (True, 1, "must be bool, got 1"),
        ("a", "b", None),
        (16, None, "must be int, got None"),
    ],
)
def test_a_parameter_has_the_type_of_its_default(default: object, value: object, problem: str | None) -> None:
    parameter = Parameter(name="p", default=default, search=(), help="")  # type: ignore[arg-type]

    assert parameter.problem(value) == problem


def test_bounds_are_legal_values_themselves() -> None:
    parameter = Parameter(name="p", default=1, search=(), help="", minimum=1, maximum=3)

    assert [parameter.problem(value) for value in (0, 1, 3, 4)] == [
        "must be at least 1, got 0",
        None,
        None,
        "must be at most 3, got 4",
    ]


def test_a_condition_on_size_does_not_hold_for_what_is_absent() -> None:
    condition = Condition(key="length.tokens", at_least=2, at_most=4)

    assert [condition.holds(fact, {}) for fact in (None, 1, 2, 4, 5, "3")] == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert condition.text({}) == "length.tokens at least 2 and at most 4"


def test_what_divides_a_number_that_is_not_known_is_not_judged() -> None:
    condition = Condition(key="micro_batch.size", divides="batch")

    assert condition.holds(3, {})
    assert not condition.holds(3, {"batch": 8})
    assert condition.holds(4, {"batch": 8})
    assert condition.text({"batch": 8}) == "micro_batch.size to divide batch (8)"


def test_values_are_listed_as_people_do() -> None:
    assert one_of(["vera", "lora", "dora"]) == "dora, lora or vera"
    assert one_of([512, 64]) == "512 or 64"
    assert one_of(["a"]) == "a"


@pytest.mark.parametrize(("fact", "holds"), [(0, False), (1e-9, True), (None, False)])
def test_above_does_not_include_the_bound(fact: object, holds: bool) -> None:
    assert Condition(key="trainer.arguments.beta", above=0).holds(fact, {}) is holds
