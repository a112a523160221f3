from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study

pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is not installed")

from memsweep.dashboard.exhibit import Exhibit, exhibit


def trials_of(shown: Exhibit) -> list[Any]:
    return shown.storage.get_all_trials(0)


def rewritten(folder: StudyFolder, lines: list[str]) -> None:
    folder.results.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_trials_keep_the_numbers_of_the_study(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()
    lines = folder.results.read_text(encoding="utf-8").splitlines()
    rewritten(folder, [line for line in reversed(lines) if json.loads(line)["number"] != 4])

    trials = trials_of(exhibit(folder))

    assert [trial.number for trial in trials] == list(range(24))
    assert (trials[4].state, trials[4].params) == (TrialState.FAIL, {})
    _, results = read_study(folder.path)
    assert {t.number: t.user_attrs.get("set-up") for t in trials} == {
        **{result.number: result.label for result in results},
        4: None,
    }


def test_only_what_was_measured_has_values(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()

    trials = trials_of(exhibit(folder))

    measured = {result.number for result in read_study(folder.path)[1] if result.objectives}
    assert {trial.number for trial in trials if trial.state is TrialState.COMPLETE} == measured
    assert all(trial.values is None for trial in trials if trial.number not in measured)


def test_a_study_without_trials_is_shown(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()
    folder.results.unlink()

    shown = exhibit(folder)

    assert (trials_of(shown), shown.front) == ([], frozenset())


def test_nothing_is_written(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}

    exhibit(folder)

    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before


def test_the_study_is_called_what_it_is_about(make_study: Callable[..., StudyFolder]) -> None:
    (study,) = exhibit(make_study()).storage.get_all_studies()

    assert study.study_name == "example (sft, small, embedded)"
    assert study.user_attrs["which picture counts"].startswith("the feasible front")


def test_another_apps_study_is_shown_too(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study(context={}, constraints={}, reference={})

    shown = exhibit(folder)

    assert shown.storage.get_study_name_from_id(0) == "example"


@pytest.mark.parametrize("damage", ["{", '{"number": 0}'])
def test_a_damaged_study_is_an_error(damage: str, make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()
    folder.results.write_text(damage + "\n", encoding="utf-8")

    with pytest.raises((KeyError, TypeError, ValueError)):
        exhibit(folder)


def test_a_folder_without_a_study_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exhibit(StudyFolder(tmp_path))
