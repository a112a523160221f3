from __future__ import annotations

import pytest

from memsweep.findings.words import (
    CHANGES,
    OUTCOMES,
    PHASES,
    changes_text,
    constraint_text,
    name_text,
    outcome_text,
    reason_text,
    tie_text,
)
from memsweep.record.outcome import OUTCOME_TYPES, OutOfMemory, Phase
from memsweep.record.study import Constraint
from memsweep.technique.option import Changes
from memsweep.units import MIB
from synthetic import measured, study_of


def test_every_outcome_phase_and_change_has_words() -> None:
    assert set(OUTCOMES) == set(OUTCOME_TYPES)
    assert set(PHASES) >= {phase.value for phase in Phase}
    assert set(CHANGES) == {change.value for change in Changes} - {Changes.NOTHING.value}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tokens_per_second", "throughput"),
        ("peak_memory_bytes", "peak memory"),
        ("steps_per_second", "steps per second"),
        ("held_bytes", "held"),
        ("loss", "loss"),
    ],
)
def test_measures_are_named_without_their_units(name: str, expected: str) -> None:
    assert name_text(name) == expected


def test_changes_are_joined_as_in_a_sentence() -> None:
    text = changes_text(("batch", "data", "numerics"))

    assert text == "Changes which examples share a step, what it trains on and how numbers are rounded"


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (
            Constraint(measure="peak_memory_bytes", upper=True, bound=512.0 * MIB),
            "peak memory at most 512.0 MiB",
        ),
        (Constraint(measure="peak_memory_bytes", upper=True), ""),
        (
            Constraint(measure="kept_tokens", upper=False, of_baseline=True),
            "kept tokens at least the baseline's",
        ),
        (
            Constraint(measure="kept_tokens", upper=False, bound=90.0, of_baseline=True),
            "kept tokens at least the baseline's (90)",
        ),
    ],
)
def test_demands_are_told_with_their_bounds(constraint: Constraint, expected: str) -> None:
    assert constraint_text(constraint) == expected


def test_a_broken_demand_is_told_with_the_miss_in_its_unit() -> None:
    result = measured(3, {"adapter": "baseline"}, constraints={"memory_budget": 20.0 * MIB}, feasible=False)

    assert reason_text(result, study_of(4)) == "misses peak memory at most 520.0 MiB by 20.0 MiB"


def test_a_feasible_trial_needs_no_reason() -> None:
    assert reason_text(measured(3, {"adapter": "baseline"}), study_of(4)) == ""


def test_a_reused_measurement_names_its_trial() -> None:
    result = measured(3, {"adapter": "baseline"}, reused_from=1)

    assert reason_text(result, study_of(4)) == "same set-up as trial 1"


def test_a_repeat_out_of_memory_is_a_reason() -> None:
    memory = OutOfMemory(
        where="host", phase=Phase.WARM_UP, requested_bytes=None, held_bytes=None, evidence="a test"
    )
    result = measured(3, {"adapter": "baseline"}, repeats=(memory,), feasible=False)

    assert reason_text(result, study_of(4)) == (
        "host out of memory in warm_up when it was measured again (repeat 1), so it fits only sometimes"
    )


def test_what_cannot_be_compared_is_not_called_infeasible() -> None:
    unlike = ("other data than trial 0: a, not b",)
    result = measured(3, {"adapter": "baseline"}, unlike=unlike, feasible=False, constraints={})

    assert outcome_text(result) == "measured, not comparable"
    assert reason_text(result, study_of(4)) == unlike[0]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((), ""), ((4,), "tied with 4"), ((4, 9), "tied with 4 and 9"), ((1, 4, 9), "tied with 1, 4 and 9")],
)
def test_ties_are_told_by_number(numbers: tuple[int, ...], expected: str) -> None:
    assert tie_text(numbers) == expected
