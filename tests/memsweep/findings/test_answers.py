from __future__ import annotations

import pytest

from memsweep.findings.answers import answers, answers_among, cost_text
from memsweep.findings.find import find
from memsweep.findings.views import view
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from synthetic import measured, study_of

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def figures(number: int, speed: float, memory: float, *changes: str) -> TrialResult:
    objectives = {"tokens_per_second": speed, "peak_memory_bytes": memory}
    choice = BASELINE if number == 0 else {**BASELINE, "packing": "bfd"}
    return measured(
        number,
        choice,
        objectives=objectives,
        measures=objectives,
        feasible=True,
        changes=changes,
        constraints={},
    )


def titles(results: list[TrialResult], study: Study) -> dict[str, int]:
    return {answer.title: answer.result.number for answer in answers(find(results, study))}


def test_the_budget_is_part_of_the_question(study: Study) -> None:
    found = titles(
        [figures(0, 100, 100), figures(1, 200, 200), figures(2, 185, 90), figures(3, 120, 50)], study
    )

    assert found == {
        "Fastest that fits in 520.0 MiB": 1,
        "Smallest": 3,
        "Smallest at 90 % of the best throughput": 2,
    }


def test_one_trial_that_answers_several_questions_is_told_once(study: Study) -> None:
    assert titles([figures(0, 100, 100)], study) == {
        "Fastest that fits in 520.0 MiB, and smallest, and smallest at 90 % of the best throughput": 0
    }


def test_what_changes_more_is_an_answer_of_its_own_where_it_is_better(study: Study) -> None:
    found = answers(find([figures(0, 100, 100), figures(1, 200, 150, "batch")], study))

    assert [(answer.title, answer.condition) for answer in found][1:] == [
        (
            "Fastest of all that fits in 520.0 MiB, and smallest of all at 90 % of the best throughput",
            "changes which examples share a step",
        )
    ]


def test_what_is_infeasible_is_no_answer(study: Study) -> None:
    faster = figures(1, 900, 10)
    infeasible = measured(1, faster.choice, objectives=faster.objectives, measures={}, feasible=False)

    assert set(titles([figures(0, 100, 100), infeasible], study).values()) == {0}


def test_an_app_of_one_objective_has_one_answer() -> None:
    study = study_of(1, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    results = [measured(0, {}, objectives={"loss": 0.5}, measures={}, constraints={}, feasible=True)]

    assert titles(results, study) == {"Best loss": 0}


def test_no_trials_have_no_answers(study: Study) -> None:
    assert answers(find([], study)) == ()


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ((), "To be had: 1.50 times its throughput or 0.80 times its peak memory (0.79 to 0.81)"),
        (("batch",), "To be had: 3.00 times its throughput or 0.80 times its peak memory (0.79 to 0.81)"),
    ],
)
def test_what_the_baseline_costs_depends_on_what_is_accepted(
    accepted: tuple[str, ...], expected: str, study: Study
) -> None:
    results = [figures(0, 100, 100), figures(1, 150, 120), figures(2, 50, 80), figures(3, 300, 300, "batch")]
    findings = find(results, study)

    assert cost_text(findings, view(findings, accepted)) == expected


def test_a_baseline_that_is_the_best_costs_nothing(study: Study) -> None:
    findings = find([figures(0, 100, 100)], study)

    assert cost_text(findings, view(findings, ())) == ""


def test_answers_of_a_view_name_no_trial_outside_it(results: tuple[TrialResult, ...], study: Study) -> None:
    findings = find(results, study)

    for answer in answers_among(view(findings, ("batch",)), findings):
        assert set(answer.result.changes) <= {"batch"}
