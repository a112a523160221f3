"""Combinations that are ruled out."""

from __future__ import annotations

from typing import Any

import pytest

from memsweep.search.exclusion import Exclusion, excluding
from memsweep.search.match import read_match
from memsweep.search.verdict import ABSENT, Request, Verdict

LARGE = Exclusion(
    pairs={"optimizer": read_match("sgd"), "batch": read_match({"at_least": 64})},
    because="it never converged",
)


def request(**groups: Any) -> Request:
    return Request(options={"adapter": "lora"}, parameters={"technique.adapter.r": 8}, groups=groups, rest=())


def lookup(key: str, asked: Request) -> Any:
    return asked.value(key)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({"optimizer": "sgd", "batch": 64}, True),
        ({"optimizer": "sgd", "batch": 32}, False),
        ({"optimizer": "adam", "batch": 64}, False),
        ({"optimizer": "sgd"}, False),
    ],
)
def test_a_cell_that_meets_every_pair_is_excluded(groups: dict[str, Any], expected: bool) -> None:
    assert LARGE.excludes(request(**groups), lookup) is expected


def test_the_reason_is_a_violation_beside_those_of_the_app() -> None:
    judge = excluding(lambda _: Verdict(violations=("a rule",), requested_hash=""), [LARGE], lookup)

    assert judge(request(optimizer="sgd", batch=64)).violations == (
        "a rule",
        "optimizer=sgd with batch at least 64 is excluded: it never converged",
    )


def test_what_is_not_excluded_keeps_its_verdict() -> None:
    verdict = Verdict(requested_hash="abc")

    assert excluding(lambda _: verdict, [LARGE], lookup)(request(optimizer="adam", batch=64)) is verdict


def test_a_request_is_asked_by_key_whatever_the_key_is_about() -> None:
    asked = request(batch=None)

    assert asked.value("technique/adapter") == "lora"
    assert asked.value("technique.adapter.r") == 8
    assert asked.value("batch") is None
    assert asked.value("technique/packing") is ABSENT
    assert asked.value("other") is ABSENT
