from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize(
    ("claim", "remedy"),
    [
        ({"allowed": (0.1,)}, "type trainer.arguments.beta=0.1"),
        ({"allowed": (1,)}, "type trainer.arguments.beta=1"),
        ({"allowed": (True,)}, "type trainer.arguments.beta=true"),
        ({"allowed": (0.1, 0.2)}, "set trainer.arguments.beta to 0.1 or 0.2"),
        ({"above": 0}, "set trainer.arguments.beta above 0"),
        ({"at_least": 1, "at_most": 2}, "set trainer.arguments.beta at least 1 and at most 2"),
    ],
)
def test_a_remedy_is_typed_only_where_one_value_fits(claim: dict[str, Any], remedy: str) -> None:
    assert Condition(key="trainer.arguments.beta", **claim).remedy({}) == remedy


def test_values_are_listed_as_people_do() -> None:
    assert one_of(["vera", "lora", "dora"]) == "dora, lora or vera"
    assert one_of([512, 64]) == "512 or 64"
    assert one_of(["a"]) == "a"


@pytest.mark.parametrize(("fact", "holds"), [(0, False), (1e-9, True), (None, False)])
def test_above_does_not_include_the_bound(fact: object, holds: bool) -> None:
    assert Condition(key="trainer.arguments.beta", above=0).holds(fact, {}) is holds
