from __future__ import annotations

import dataclasses
from pathlib import Path

from memsweep.dashboard.notes import study_note, trial_note
from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import measured

FOLDER = StudyFolder(Path("outputs/example"))


def test_the_studys_note_says_which_picture_counts_and_lists_the_front_alone(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)

    note = study_note(findings, FOLDER)

    rows = [line for line in note.splitlines() if line.startswith("| [")]
    assert "What counts is the feasible front" in note
    assert len(rows) == len(findings.front) > 0
    for row, result in zip(rows, findings.front, strict=True):
        assert row.startswith(f"| [{result.number}](/dashboard/studies/0/trials?numbers={result.number})")
    assert "`memsweep report outputs/example`" in note


def test_an_infeasible_trial_is_named_in_the_studys_note_among_failures_only(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    note = study_note(find(results, study), FOLDER)

    answers = [line for line in note.splitlines() if line.startswith("- ") and "tokens/s" in line]
    infeasible = {result.number for result in results if not result.feasible}
    assert answers
    for line in answers:
        assert not any(f"[{number}]" in line for number in infeasible)
    assert "- out of memory: [3]" in note


def test_a_study_without_a_feasible_trial_says_so(study: Study) -> None:
    infeasible = dataclasses.replace(measured(0, {"adapter": "lora"}), feasible=False)

    assert "**No trial is feasible so far.**" in study_note(find([infeasible], study), FOLDER)
    assert "no trial yet" in study_note(find([], study), FOLDER)


def test_a_study_that_runs_is_not_said_to_have_ended(study: Study) -> None:
    note = study_note(find([], dataclasses.replace(study, ended=None)), FOLDER)

    assert "it runs, or was killed" in note


def test_a_trials_note_says_how_it_ended_why_and_what_repeats_it(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    by_outcome = {result.outcome.type: result for result in results}

    memory = trial_note(by_outcome["out_of_memory"], findings, FOLDER)
    crashed = trial_note(by_outcome["crashed"], findings, FOLDER)

    assert "Device out of memory in warm\\_up asking for 3.0 GiB" in memory
    assert f"```sh\n{by_outcome['out_of_memory'].command}\n```" in memory
    assert f"outputs/example/trials/{by_outcome['out_of_memory'].number}`" in memory
    assert "RuntimeError: shapes <2> & <3> do not fit" in crashed


def test_a_measured_trials_note_compares_it_with_the_baseline(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    best = next(result for result in findings.front if not findings.is_baseline(result))

    note = trial_note(best, findings, FOLDER)

    assert "on the feasible front" in note
    assert "times the baseline's" in note


def test_what_a_configuration_says_is_no_markup(study: Study) -> None:
    choice = {"x": "<img src=x>|**bold** [a](javascript:b)"}
    hostile = dataclasses.replace(measured(0, {}), choice=choice, overrides=("x=```\n# title",))

    note = trial_note(hostile, find([hostile], study), FOLDER)
    front = study_note(find([hostile], study), FOLDER)

    assert "\\<img src=x\\>\\|\\*\\*bold\\*\\* \\[a\\](javascript:b)" in note
    assert "````sh\n" in note
    assert "\\<img src=x\\>\\|" in front
