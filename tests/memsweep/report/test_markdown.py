from __future__ import annotations

import re

import pytest

from memsweep.findings.find import find
from memsweep.record.outcome import Crashed, Measured, Phase
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
        "What each choice does over all trials",
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


def busy(number: int, share: int, speed: float = 100.0) -> TrialResult:
    """Return a trial that ran beside others, its speed known to +-150 %."""
    measures = {"tokens_per_second": speed, "peak_memory_bytes": 1_000.0 - number}
    intervals = {"tokens_per_second": (0.0, 2.5 * speed)}
    outcome = Measured(measures=measures, intervals=intervals, remarks=(f"busy: waited {share}%",))
    choice = {**BASELINE, "packing": "bfd"} if number else BASELINE
    facts = {"objectives": measures, "measures": measures, "constraints": {}, "feasible": True, "changes": ()}
    return measured(number, choice, outcome=outcome, **facts)


def test_remarks_stand_below_the_table_and_beside_the_answers(study: Study) -> None:
    text = told((busy(0, 70), busy(1, 55, 136.0)), study)
    table = text.partition("## What is worth having")[2].partition("\n## ")[0]

    assert "| 1\\* |" in table
    assert "- trials 0, 1: busy: waited 55 to 70%" in text
    assert text.partition("## What is worth")[0].count("Before you believe it: busy: waited") == 2


def test_a_multiple_that_is_hardly_known_is_no_plain_claim(study: Study) -> None:
    text = told((busy(0, 70), busy(1, 55, 136.0)), study)

    assert "To be had: 1.36 times its throughput (hardly known)" in text
    assert "(1.36 x?)" in text


def test_what_peak_memory_is_and_what_was_not_searched_are_said(study: Study) -> None:
    recorded = {"device": "cpu", "memory": {"start_anonymous_bytes": 5 << 20}}
    text = markdown(find([busy(0, 70)], study), (), recorded, ("micro_batch=size size=2",))

    assert "held 5.0 MiB by then" in text
    assert "Parameters that were not searched: `micro_batch=size size=2`." in text
