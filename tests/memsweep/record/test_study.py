"""study.json says what a study set out to do, and keeps the order of its objectives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memsweep.record.folder import StudyFolder
from memsweep.record.study import Constraint, Direction, Study, read_study
from memsweep.record.trial import TrialResult


def test_a_study_is_read_as_it_was_written(tmp_path: Path, study: Study) -> None:
    study.write(StudyFolder(tmp_path))

    assert Study.read(StudyFolder(tmp_path)) == study


def test_objectives_keep_their_order_though_keys_are_sorted(tmp_path: Path, study: Study) -> None:
    objectives = {"z": Direction.MINIMIZE, "a": Direction.MAXIMIZE, "m": Direction.MINIMIZE}
    replace(study, objectives=objectives).write(StudyFolder(tmp_path))

    assert list(Study.read(StudyFolder(tmp_path)).objectives) == ["z", "a", "m"]


def test_a_study_is_read_with_its_trials(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study(n_trials=5)
    _, trials = read_study(folder.path)

    assert [trial.number for trial in trials] == [0, 1, 2, 3, 4]


def test_a_study_without_trials_has_none(tmp_path: Path, study: Study) -> None:
    study.write(StudyFolder(tmp_path))

    assert read_study(tmp_path)[1] == ()


@pytest.mark.parametrize(
    "text", ["{}", '{"objectives": 3}', "[]", "not json", '{"objectives": [["a", "up"]]}']
)
def test_a_file_that_holds_no_study_is_named(tmp_path: Path, text: str) -> None:
    folder = StudyFolder(tmp_path)
    folder.study.write_text(text)

    with pytest.raises(ValueError, match=r"study\.json"):
        Study.read(folder)


def test_an_upper_bound_is_violated_above_it() -> None:
    budget = Constraint(measure="peak_memory_bytes", upper=True, bound=100.0)

    assert budget.violation({"peak_memory_bytes": 130}) == 30
    assert budget.violation({"peak_memory_bytes": 100}) == 0
    assert (budget.at_most, budget.at_least) == (100.0, None)


def test_a_lower_bound_is_violated_below_it() -> None:
    kept = Constraint(measure="kept_tokens", upper=False, bound=100.0)

    assert kept.violation({"kept_tokens": 80}) == 20
    assert (kept.at_most, kept.at_least) == (None, 100.0)


def test_what_is_not_known_is_not_judged() -> None:
    kept = Constraint(measure="kept_tokens", upper=False, of_baseline=True)

    assert kept.violation({"kept_tokens": 80}) is None
    assert replace(kept, bound=1.0).violation({}) is None


def test_losses_are_smaller_where_trials_are_better(study: Study, results: tuple[TrialResult, ...]) -> None:
    measured = [result for result in results if result.objectives]
    fastest = max(measured, key=lambda result: result.objectives["tokens_per_second"])
    losses = dict(zip([r.number for r in measured], study.losses(measured), strict=True))

    assert losses[fastest.number][0] == min(row[0] for row in losses.values())
    assert losses[fastest.number][1] == fastest.objectives["peak_memory_bytes"]


def test_study_json_is_plain_data(tmp_path: Path, study: Study) -> None:
    study.write(StudyFolder(tmp_path))
    data = json.loads(StudyFolder(tmp_path).study.read_text())

    assert data["objectives"][0] == ["tokens_per_second", "maximize"]
    assert data["constraints"]["kept_tokens"]["of_baseline"] in (True, False)
