"""The closed list of ends: each is data, a line for a person, and an exit code."""

from __future__ import annotations

import json

import pytest

from memsweep.record.outcome import (
    OUTCOME_TYPES,
    Crashed,
    CutShort,
    Incompatible,
    Interrupted,
    Measured,
    NonFinite,
    NotInForce,
    Outcome,
    OutOfMemory,
    Phase,
    Reused,
    TimedOut,
    from_mapping,
    to_mapping,
)

EVERY_OUTCOME: list[Outcome] = [
    Measured(measures={"tokens_per_second": 1.0}),
    Reused(trial=3, measures={"tokens_per_second": 1.0}),
    OutOfMemory(where="device", phase=Phase.BUILD, requested_bytes=1, held_bytes=None, evidence="e"),
    CutShort(reason="r", measures={}),
    Incompatible(violations=("a", "b")),
    NotInForce(differences=("a",)),
    TimedOut(limit_seconds=3.0, phase=Phase.MEASURE),
    NonFinite(what="loss=nan", step=2),
    Crashed(reason="r", phase=Phase.END, last_lines=("l",), process_exit_code=3, signal=None),
    Interrupted(reason="r"),
]


def test_the_list_is_closed() -> None:
    assert {type(outcome) for outcome in EVERY_OUTCOME} == set(OUTCOME_TYPES.values())


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=lambda outcome: str(outcome.type))
def test_an_outcome_survives_json(outcome: Outcome) -> None:
    assert from_mapping(json.loads(json.dumps(to_mapping(outcome)))) == outcome


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=lambda outcome: str(outcome.type))
def test_an_outcome_is_one_line_for_a_person(outcome: Outcome) -> None:
    assert outcome.text
    assert "\n" not in outcome.text


def test_exit_codes_tell_the_ends_apart() -> None:
    codes = {outcome.type: outcome.exit_code for outcome in EVERY_OUTCOME}

    assert codes["measured"] == codes["reused"] == 0
    assert codes["crashed"] == 1
    assert codes["incompatible"] == 2
    assert codes["interrupted"] == 130
    assert len({codes[name] for name in ("out_of_memory", "not_in_force", "timed_out", "non_finite")}) == 4


@pytest.mark.parametrize(
    "data, message",
    [
        ({"type": "lost"}, "must be one of"),
        ({}, "must be one of"),
        ({"type": "measured", "measures": {}, "more": 1}, "has no"),
        ({"type": "measured"}, "measured"),
    ],
)
def test_what_is_no_outcome_is_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_mapping(data)
