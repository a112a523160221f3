from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from memsweep.findings.find import find
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Measured, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.tracking import content


def repeated(result: TrialResult, *speeds: float) -> TrialResult:
    """Return `result` with further runs, which differ in throughput, and one that crashed."""
    runs = [Measured(measures={**result.measures, "tokens_per_second": speed}) for speed in speeds]
    crash = Crashed(reason="killed", phase=Phase.MEASURE)
    return dataclasses.replace(result, repeats=(*runs, crash))


def test_a_summary_has_figures_with_intervals_and_a_place_on_the_front(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    summaries = {result.number: content.trial_summary(result, findings) for result in results}

    assert summaries[0]["objective/tokens_per_second"] == results[0].objectives["tokens_per_second"]
    low, high = (
        summaries[0]["objective/peak_memory_bytes_low"],
        summaries[0]["objective/peak_memory_bytes_high"],
    )
    assert low < results[0].objectives["peak_memory_bytes"] < high
    on_front = {number for number, summary in summaries.items() if summary["pareto/on_front"]}
    members = {member.number for member in findings.front}
    assert on_front == members | {r.number for r in results if r.reused_from in members}


def test_a_summary_of_a_trial_without_figures_has_no_number_for_them(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    for result in results:
        summary = content.trial_summary(result, findings)
        if not result.objectives:
            assert not [key for key in summary if key.startswith(("objective/", "measure/", "constraint/"))]
            assert "trial/n_runs" not in summary


def test_every_run_of_a_trial_that_was_measured_again_is_a_row(results: tuple[TrialResult, ...]) -> None:
    rows = list(content.runs(repeated(results[0], 1100.0, 1300.0)))

    assert [row["repeat/number"] for row in rows] == [0, 1, 2, 3]
    assert [row.get("repeat/tokens_per_second") for row in rows] == [
        results[0].measures["tokens_per_second"],
        1100.0,
        1300.0,
        None,
    ]
    assert rows[3]["repeat/outcome"] == "crashed"


def test_a_trial_that_was_measured_once_has_no_rows_of_repeats(results: tuple[TrialResult, ...]) -> None:
    assert list(content.runs(results[0])) == []


def test_what_the_trainer_logged_is_under_train_and_eval_by_its_step(tmp_path: Path) -> None:
    lines = [
        {"step": 1, "loss": 2.5, "grad_norm": 1.0, "learning_rate": 5e-5},
        {"step": 2, "eval_loss": 2.25},
        {"step": 4, "loss": "nan"},
    ]
    text = "\n".join(map(json.dumps, lines)) + '\n{"step": 5, "lo'
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")

    first, second, third = content.trained(TrialFolder(tmp_path))

    assert first == {
        "train/global_step": 1,
        "train/loss": 2.5,
        "train/grad_norm": 1.0,
        "train/learning_rate": 5e-5,
    }
    assert second == {"train/global_step": 2, "eval/loss": 2.25}
    assert math.isnan(third["train/loss"])


def test_a_trial_that_never_trained_has_logged_nothing(tmp_path: Path) -> None:
    assert list(content.trained(TrialFolder(tmp_path))) == []


def test_searched_names_have_no_dots_and_techniques_are_choices(results: tuple[TrialResult, ...]) -> None:
    parameters = {"technique/adapter": "lora", "technique.adapter.r": "16", "+x.y": "a"}
    result = dataclasses.replace(results[0], parameters=parameters)

    assert content.searched(result) == {"technique_adapter_r": 16, "_x_y": "a"}


def test_a_table_has_no_figure_where_none_was_measured(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    table = content.table(findings, findings.results, with_outcome=True)

    for row, result in zip(table.rows, findings.results, strict=True):
        cells = dict(zip(table.columns, row, strict=True))
        assert cells["tokens_per_second"] == result.objectives.get("tokens_per_second")
        assert (cells["runs"] is None) == (not result.objectives)
        assert cells["outcome"]


def test_a_row_of_the_study_counts_every_outcome(study: Study, results: tuple[TrialResult, ...]) -> None:
    row = content.study_row(find(results, study), 23)

    assert sum(count for name, count in row.items() if name.startswith("outcome/")) == len(results)
    assert row["front/hypervolume"] > 0
    assert row["reference/tokens_per_second"] == study.reference["tokens_per_second"].value


def test_without_a_reference_point_there_is_no_hypervolume(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, dataclasses.replace(study, reference={}))

    assert "front/hypervolume" not in content.study_row(findings, 23)
    assert content.covered_table(findings).rows == ()


def test_the_hypervolume_after_each_trial_ends_at_that_of_the_front(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    rows = content.covered_table(findings).rows

    assert [number for number, _ in rows] == list(range(len(results)))
    assert rows[-1][1] == pytest.approx(findings.hypervolume())
