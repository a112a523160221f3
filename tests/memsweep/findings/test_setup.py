from __future__ import annotations

import pytest

from memsweep.findings.setup import choice_text, differences, number, set_up
from synthetic import measured


def test_parameters_of_an_option_are_part_of_it() -> None:
    result = measured(
        0,
        {"adapter": "baseline", "micro_batch": "size"},
        parameters={"technique/micro_batch": "size", "technique.micro_batch.size": "2", "trainer.batch": "8"},
    )

    assert set_up(result) == {"adapter": "baseline", "micro_batch": "size size=2", "trainer.batch": "8"}


def test_an_app_without_techniques_has_its_parameters() -> None:
    assert set_up(measured(0, {}, parameters={"lr": "0.1"})) == {"lr": "0.1"}


def test_set_ups_differ_in_what_both_choose_otherwise() -> None:
    one, other = {"a": "1", "b": "1"}, {"a": "2", "b": "1"}

    assert differences(one, other) == ("a",)
    assert differences(one, one) == ()


def test_a_key_that_comes_with_another_choice_is_no_difference_of_its_own() -> None:
    assert differences({"kind": "x"}, {"kind": "y", "y.depth": "3"}) == ("kind",)
    assert differences({"kind": "x"}, {"kind": "x", "depth": "3"}) == ("depth",)


def test_a_choice_is_labelled_without_its_path() -> None:
    assert choice_text("trainer.batch", "8") == "batch=8"


@pytest.mark.parametrize(
    ("label", "expected"), [("8", 8), ("0.5", 0.5), ("1e-4", 0.0001), ("nf4", "nf4"), ("true", "true")]
)
def test_a_label_is_a_number_where_it_is_one(label: str, expected: object) -> None:
    found = number(label)

    assert found == expected
    assert type(found) is type(expected)
