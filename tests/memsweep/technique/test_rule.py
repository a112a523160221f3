from __future__ import annotations

import pytest

from memsweep.technique.rule import Condition, one_of


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
