"""When a study is over: every rule by itself, and what none of them minds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memsweep.record.outcome import Crashed, CutShort, Incompatible, NonFinite, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.study.stop import Spent, Stop, StopRules, out_of_time, stop
from synthetic import ended, measured, study_of

BASELINE = dict.fromkeys(("adapter", "checkpointing", "packing", "truncation", "micro_batch"), "baseline")
STUDY = study_of(24)
CRASH = Crashed(reason="a test", phase=Phase.BUILD)
NOTHING = Spent(wall_seconds=0.0)


def trial(number: int, *, speed: float = 1_000.0, peak: float = 400e6, seconds: float = 60.0) -> TrialResult:
    figures = {"tokens_per_second": speed, "peak_memory_bytes": peak}
    return measured(number, BASELINE, objectives=figures, feasible=True, seconds={"total": seconds})


def crashed(number: int) -> TrialResult:
    return ended(number, BASELINE, CRASH)


def stopped(
    results: list[TrialResult], spent: Spent = NOTHING, study: Study = STUDY, **rules: Any
) -> Stop | None:
    return stop(StopRules(**{"n_trials": 100, **rules}), study, results, spent)


def test_nothing_stops_a_study_that_has_just_begun() -> None:
    everything = {
        "max_seconds": 1.0,
        "max_device_hours": 0.001,
        "stagnation": 1,
        "max_failures": 0,
        "max_failure_rate": 0.0,
        "fail_fast": True,
    }

    assert stopped([], **everything) is None


def test_n_trials_are_those_that_count() -> None:
    refused = ended(0, BASELINE, Incompatible(violations=("a rule",)))
    short = ended(1, BASELINE, CutShort(reason="a test", measures={}))

    assert stopped([refused, short], n_trials=2) is None
    assert stopped([refused, short, trial(2)], n_trials=2) == Stop("2 trials")


def test_no_trial_begins_that_would_end_too_late_by_the_median() -> None:
    results = [trial(0, seconds=10), trial(1, seconds=60), trial(2, seconds=500)]

    assert stopped(results, Spent(wall_seconds=539), max_seconds=600) is None
    assert stopped(results, Spent(wall_seconds=541), max_seconds=600) == Stop(
        "max_seconds: 9 min 1 s of 10 min 0 s are over, a trial takes 1 min 0 s"
    )


def test_time_for_measuring_again_is_kept() -> None:
    spent = Spent(wall_seconds=300, ahead_seconds=250)
    found = stopped([trial(0, seconds=60)], spent, max_seconds=600)

    assert found is not None
    assert found.why.endswith("4 min 10 s are kept for measuring again")
    assert not found.has_failed


def test_trials_that_were_not_run_say_nothing_of_how_long_one_takes() -> None:
    refused = [ended(n, BASELINE, Incompatible(violations=("a rule",))) for n in range(5)]
    instant = [replace(one, seconds={"total": 0.0}) for one in refused]

    assert stopped([*instant, trial(5, seconds=60)], Spent(wall_seconds=550), max_seconds=600) is not None
    assert out_of_time(StopRules(n_trials=9, max_seconds=1), instant, Spent(wall_seconds=5)) is None


def test_device_time_is_counted_apart_from_wall_time() -> None:
    results = [trial(0, seconds=60)]
    spent = Spent(wall_seconds=100, device_seconds=3541)

    assert stopped(results, replace(spent, device_seconds=3539), max_device_hours=1.0) is None
    assert stopped(results, spent, max_device_hours=1.0) == Stop(
        "max_device_hours: 59 min 1 s of 1 h 0 min are used, a trial takes 1 min 0 s"
    )


def test_a_front_that_does_not_grow_ends_the_study() -> None:
    worse = [trial(n, speed=900) for n in range(1, 4)]

    assert stopped([trial(0), *worse[:2]], stagnation=3) is None
    assert stopped([trial(0), *worse], stagnation=3) == Stop(
        "stagnation: 3 trials in a row have grown the front by 0.00%"
    )


def test_growth_within_the_tolerance_is_none() -> None:
    results = [trial(0), trial(1, speed=1_000.5), trial(2, speed=1_001)]

    assert stopped(results, stagnation=2, stagnation_tolerance=0.01) is not None
    assert stopped(results, stagnation=2, stagnation_tolerance=0.0) is None


def test_growth_anywhere_in_the_row_keeps_the_study_going() -> None:
    results = [trial(0), trial(1, speed=2_000), trial(2, speed=900), trial(3, speed=900)]

    assert stopped(results, stagnation=3) is None
    assert stopped([*results, trial(4, speed=900)], stagnation=3) is not None


def test_a_study_without_a_front_has_not_come_to_rest() -> None:
    infeasible = [replace(trial(n), feasible=False) for n in range(9)]

    assert stopped(infeasible, stagnation=3) is None
    assert stopped([*infeasible, trial(9)], stagnation=3) is None


def test_trials_that_do_not_count_are_not_in_the_row() -> None:
    refused = [ended(n, BASELINE, Incompatible(violations=("a rule",))) for n in range(1, 9)]

    assert stopped([trial(0), *refused], stagnation=3) is None


def test_trials_cut_short_are_in_the_row() -> None:
    short = [ended(n, BASELINE, CutShort(reason="a test", measures={})) for n in range(1, 4)]

    assert stopped([trial(0), *short], stagnation=3) is not None


def test_a_rate_of_zero_covers_nothing_and_breaks_nothing() -> None:
    results = [trial(0), *(trial(n, speed=0.0) for n in range(1, 4))]

    assert stopped(results, stagnation=3) is not None


def test_more_failures_than_allowed_fail_the_study() -> None:
    nan = ended(1, BASELINE, NonFinite(what="loss is nan", step=1))

    assert stopped([crashed(0), nan], max_failures=2) is None
    assert stopped([crashed(0), nan, crashed(2)], max_failures=2) == Stop(
        "max_failures: 3 failures, 2 are allowed", has_failed=True
    )


def test_the_failure_rate_is_a_share_of_n_trials() -> None:
    two = [crashed(0), crashed(1)]

    assert stopped(two, n_trials=20, max_failure_rate=0.1) is None
    assert stopped([*two, crashed(2)], n_trials=20, max_failure_rate=0.1) == Stop(
        "more than 10% of the trials failed", has_failed=True
    )


def test_fail_fast_names_the_first_that_failed() -> None:
    assert stopped([trial(0), crashed(1)], fail_fast=True) == Stop(
        "fail_fast: trial 1 crashed in build: a test", has_failed=True
    )


def test_a_failed_study_has_failed_though_its_trials_are_all_run() -> None:
    found = stopped([trial(0), crashed(1)], n_trials=2, fail_fast=True)

    assert found is not None
    assert found.has_failed


def test_the_rules_in_force_are_said_and_no_others() -> None:
    every = StopRules(
        n_trials=40,
        max_seconds=1800,
        max_device_hours=2,
        stagnation=10,
        max_failures=3,
        max_failure_rate=0.25,
    )

    assert StopRules(n_trials=1).in_force == ("1 trial",)
    assert every.in_force == (
        "40 trials",
        "30 min 0 s",
        "2 h 0 min of device time",
        "10 trials in a row that do not grow the front by 0.10%",
        "more than 3 failures",
        "more than 10 failures (25% of the trials)",
    )
    assert replace(every, fail_fast=True).in_force[-1] == "the first failure"


@pytest.mark.parametrize("rules", [{"stagnation": 2}, {"max_seconds": 1e9}, {"max_device_hours": 1e9}])
def test_a_limit_that_is_not_met_stops_nothing(rules: dict[str, Any]) -> None:
    assert stopped([trial(0), trial(1, speed=2_000), trial(2, speed=4_000)], **rules) is None
