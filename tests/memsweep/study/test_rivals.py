"""Whom a trial must beat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memsweep.record.outcome import Measured, Reused
from memsweep.record.study import Constraint
from memsweep.record.trial import TrialResult
from memsweep.study.rivals import rivals
from synthetic import BUDGET_BYTES, measured, study_of

BASELINE = dict.fromkeys(("adapter", "checkpointing", "packing", "truncation", "micro_batch"), "baseline")
STUDY = study_of(24, conditions={"machine": "a"}, trial_versions={"torch": "2.13.0"})


def trial(number: int, speed: float, peak: float, changes: tuple[str, ...] = (), **facts: Any) -> TrialResult:
    figures = {"tokens_per_second": speed, "peak_memory_bytes": peak}
    outcome = Measured(measures=figures, intervals={"tokens_per_second": (0.9 * speed, 1.1 * speed)})
    given = {"outcome": outcome, "objectives": figures, "measures": figures, "feasible": True}
    return measured(number, BASELINE, changes=changes, **{**given, **facts})


def numbers(results: list[TrialResult], *changes: str) -> list[int]:
    return [rival.number for rival in rivals(STUDY, results, changes).best]


def test_rivals_are_the_best_of_those_that_change_no_more() -> None:
    adapter, data = ("trained_parameters",), ("data", "trained_parameters")
    results = [trial(0, 1000, 400), trial(1, 2000, 300, adapter), trial(2, 3000, 200, data)]

    assert numbers(results) == [0]
    assert numbers(results, *adapter) == [1]
    assert numbers(results, *data) == [2]
    assert numbers(results, "data") == [0]


def test_what_is_dominated_infeasible_or_only_reused_is_no_rival() -> None:
    worse, better = trial(1, 900, 500), trial(2, 5000, 100)
    again = replace(trial(3, 1000, 400), outcome=Reused(trial=0, measures={}), reused_from=0)

    assert numbers([trial(0, 1000, 400), worse, replace(better, feasible=False), again]) == [0]


def test_a_rival_is_taken_at_its_worst() -> None:
    (rival,) = rivals(STUDY, [trial(0, 1000, 400e6)], ()).best

    assert rival.objectives == {"tokens_per_second": 1000, "peak_memory_bytes": 400e6}
    assert rival.worst == pytest.approx({"tokens_per_second": 900, "peak_memory_bytes": 404e6})


def test_a_rival_that_was_measured_several_times_is_taken_at_the_worst_of_its_runs() -> None:
    other = {"tokens_per_second": 500.0, "peak_memory_bytes": 500e6}
    (rival,) = rivals(STUDY, [trial(0, 1000, 400e6, repeats=(Measured(measures=other),))], ()).best

    assert rival.worst["tokens_per_second"] < 500
    assert rival.worst["peak_memory_bytes"] > 500e6


def test_demands_that_say_how_much_at_most_are_handed_over_once_they_are_known() -> None:
    unknown = Constraint(measure="peak_memory_bytes", upper=True, of_baseline=True)
    study = replace(STUDY, constraints={**STUDY.constraints, "no_more": unknown})

    found = rivals(study, [], ())

    assert {name: limit.bound for name, limit in found.limits.items()} == {"memory_budget": BUDGET_BYTES}
    assert found.best == ()


def test_rivals_say_under_what_conditions_they_were_measured() -> None:
    found = rivals(STUDY, [trial(0, 1000, 400)], ())

    assert (found.conditions, found.versions) == ({"machine": "a"}, {"torch": "2.13.0"})
