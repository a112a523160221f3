"""What the sampler hears of each outcome."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from optuna.trial import TrialState

from memsweep.record.outcome import (
    OUTCOME_TYPES,
    Crashed,
    CutShort,
    Incompatible,
    Interrupted,
    NonFinite,
    NotInForce,
    Outcome,
    OutOfMemory,
    Phase,
    Reused,
    TimedOut,
)
from memsweep.record.trial import TrialResult
from memsweep.search.tell import ENDED, counts_as_trial, told, worst_values
from synthetic import measured, study_of

STUDY = study_of(24)
BASELINE = dict.fromkeys(("adapter", "checkpointing", "packing", "truncation", "micro_batch"), "baseline")

UNMEASURED: list[tuple[Outcome, TrialState, bool]] = [
    (
        OutOfMemory(where="device", phase=Phase.BUILD, requested_bytes=1, held_bytes=1, evidence=""),
        TrialState.COMPLETE,
        True,
    ),
    (CutShort(reason="a test", measures={}), TrialState.COMPLETE, True),
    (Incompatible(violations=("a",)), TrialState.COMPLETE, False),
    (NotInForce(differences=("a",)), TrialState.COMPLETE, True),
    (TimedOut(limit_seconds=1.0, phase=Phase.MEASURE), TrialState.COMPLETE, True),
    (NonFinite(what="loss=nan", step=1), TrialState.FAIL, True),
    (Crashed(reason="a test", phase=Phase.START), TrialState.FAIL, True),
    (Interrupted(reason="a test"), TrialState.FAIL, False),
]


def ended(outcome: Outcome) -> TrialResult:
    base = measured(1, BASELINE)
    return replace(base, outcome=outcome, objectives={}, measures={}, constraints={}, feasible=False)


@pytest.mark.parametrize("outcome, state, counts", UNMEASURED, ids=[o.type for o, *_ in UNMEASURED])
def test_an_end_without_a_measurement_is_told_as_decided(
    outcome: Outcome, state: TrialState, counts: bool
) -> None:
    result = ended(outcome)
    found = told(result, STUDY, worst_values(STUDY, []))

    assert found.state is state
    assert counts_as_trial(result) is counts
    if state is TrialState.COMPLETE:
        assert found.constraints[ENDED] > 0
        assert all(math.isfinite(value) for value in found.values or ())
        assert len(found.values or ()) == len(STUDY.objectives)


def test_every_outcome_is_told() -> None:
    covered = {outcome.type for outcome, *_ in UNMEASURED} | {"measured", "reused"}

    assert covered == set(OUTCOME_TYPES)


def test_a_measurement_is_told_as_it_is() -> None:
    result = measured(1, BASELINE)
    found = told(result, STUDY, [0.0, 0.0])

    assert found.state is TrialState.COMPLETE
    assert list(found.values or ()) == [result.objectives[name] for name in STUDY.objectives]
    assert found.constraints[ENDED] == 0


def test_a_reused_measurement_is_told_again_and_not_counted() -> None:
    result = measured(1, BASELINE)
    again = replace(result, outcome=Reused(trial=1, measures=result.measures), reused_from=1)

    assert told(again, STUDY, [0.0, 0.0]).values == told(result, STUDY, [0.0, 0.0]).values
    assert not counts_as_trial(again)


def test_every_trial_told_has_the_same_constraints() -> None:
    outcomes = [outcome for outcome, state, _ in UNMEASURED if state is TrialState.COMPLETE]
    results = [measured(1, BASELINE), *(ended(outcome) for outcome in outcomes)]
    names = {tuple(told(result, STUDY, [0.0, 0.0]).constraints) for result in results}

    assert names == {(*STUDY.constraints, ENDED)}


def test_a_violation_is_told_as_a_share_so_that_bytes_do_not_drown_tokens() -> None:
    result = measured(1, {**BASELINE, "truncation": "max_length"})
    share = told(result, STUDY, [0.0, 0.0]).constraints["kept_tokens"]

    assert share == pytest.approx(0.2)


def test_the_worst_values_are_no_better_than_anything_measured() -> None:
    results = [measured(1, BASELINE), measured(2, {**BASELINE, "checkpointing": "disabled"})]
    speed, memory = worst_values(STUDY, results)

    assert speed <= min(result.objectives["tokens_per_second"] for result in results)
    assert memory >= max(result.objectives["peak_memory_bytes"] for result in results)


def cut_short(**measures: float) -> TrialResult:
    return replace(ended(CutShort(reason="a test", measures=measures)), measures=measures)


def test_a_trial_cut_short_before_it_was_timed_is_infeasible_with_the_memory_that_it_took() -> None:
    result = replace(cut_short(peak_memory_bytes=9e8), constraints={"memory_budget": 1e8})
    found = told(result, STUDY, [7.0, 8.0])

    assert list(found.values or ()) == [7.0, 9e8]
    assert found.constraints[ENDED] > 0
    assert found.constraints["memory_budget"] > 0


def test_a_trial_cut_short_for_being_worse_is_told_as_what_it_measured() -> None:
    found = told(cut_short(tokens_per_second=500.0, peak_memory_bytes=9e8), STUDY, [7.0, 8.0])

    assert list(found.values or ()) == [500.0, 9e8]
    assert found.constraints[ENDED] == 0
