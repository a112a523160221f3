from __future__ import annotations

import re

import pytest

from memsweep.findings.find import find
from memsweep.record.outcome import Crashed, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.markdown import markdown
from synthetic import ended, measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def told(results: tuple[TrialResult, ...], study: Study, pictures: tuple[str, ...] = ()) -> str:
    return markdown(find(results, study), pictures)


def test_answers_come_first_and_each_has_its_command(results: tuple[TrialResult, ...], study: Study) -> None:
    text = told(results, study)

    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Answers",
        "What is worth having",
        "What each choice brings",
        "Refused, and why",
        "How this was measured",
    ]
    answers = text.partition("## What is worth having")[0]
    assert answers.count("```sh\npython train.py") == answers.count("\n**")


def test_every_member_of_both_fronts_is_a_row(results: tuple[TrialResult, ...], study: Study) -> None:
    found = find(results, study)
    rows = re.findall(r"^\| (\d+) \| `", told(results, study), re.MULTILINE)

    assert {int(row) for row in rows} == {result.number for result in (*found.front, *found.same_front)}


def test_every_table_has_as_many_cells_a_line_as_its_head(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    for block in told(results, study).split("\n\n"):
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_what_a_study_says_is_not_taken_for_markup(study: Study) -> None:
    crash = Crashed(reason="<img src=x> | *so* [what](x)\nnext", phase=Phase.BUILD)
    text = told((measured(0, BASELINE), ended(1, BASELINE, crash)), study_of(2, name="a_b <i>"))

    assert r"# a\_b \<i\>" in text
    assert r"\<img src=x\> \| \*so\* \[what\](x) next" in text


def test_a_command_with_backticks_stays_in_its_block() -> None:
    result = measured(0, BASELINE, overrides=("x=```",))

    assert "````sh\npython train.py 'x=```'\n````" in told((result,), study_of(1))


def test_pictures_are_shown_where_they_are(results: tuple[TrialResult, ...], study: Study) -> None:
    text = told(results, study, ("pictures/front.svg", "pictures/front.png", "pictures/effects.svg"))

    assert re.findall(r"!\[.*?\]\((.*?)\)", text) == ["pictures/front.svg", "pictures/effects.svg"]


@pytest.mark.parametrize("n_trials", [0, 1, 64])
def test_no_number_that_was_not_measured_is_shown(n_trials: int) -> None:
    text = told(trials_of_every_kind(n_trials), study_of(n_trials))

    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_nothing_feasible_says_so(study: Study) -> None:
    result = measured(0, BASELINE, constraints={"memory_budget": 5.0}, feasible=False)

    assert "No trial was measured that meets every demand." in told((result,), study)
