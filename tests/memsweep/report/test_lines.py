from __future__ import annotations

from typing import Any

import pytest

from memsweep.findings.find import find
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.report.lines import growth, parallel
from synthetic import measured, study_of

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def titles(drawn: dict[str, Any]) -> list[str]:
    return [note["text"] for note in drawn["layout"]["annotations"] if note["text"].startswith("<b>")]


def test_every_measured_set_up_is_a_line_through_every_row(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    findings = find(results, study)
    drawn = parallel(findings)
    assert drawn is not None

    assert [line[0] for line in drawn["lines"]] == [result.number for result in findings.measured]
    assert {len(line) - 1 for line in drawn["lines"]} == {len(titles(drawn))}
    assert all(-0.1 <= place <= 1.1 for line in drawn["lines"] for place in line[1:])


def test_better_lies_to_the_right_in_each_objective(study: Study) -> None:
    fast_and_large = measured(
        1, {**BASELINE, "packing": "bfd"}, objectives={"tokens_per_second": 9.0, "peak_memory_bytes": 9.0}
    )
    slow_and_small = measured(0, BASELINE, objectives={"tokens_per_second": 1.0, "peak_memory_bytes": 1.0})
    drawn = parallel(find([slow_and_small, fast_and_large], study))
    assert drawn is not None

    assert [line[-2:] for line in drawn["lines"]] == [[0.0, 1.0], [1.0, 0.0]]


def test_one_set_up_is_nothing_to_compare(study: Study) -> None:
    assert parallel(find([measured(0, BASELINE)], study)) is None


def test_plotly_takes_the_figures(results: tuple[TrialResult, ...], study: Study) -> None:
    go = pytest.importorskip("plotly.graph_objects")
    findings = find(results, study)
    drawn, grown = parallel(findings), growth(findings)
    assert drawn is not None
    assert grown is not None

    for figure in ({"data": [], "layout": drawn["layout"]}, grown[0]):
        text = repr(figure)
        for name in ("card", "ink", "faint", "line", "group-0"):
            text = text.replace(f"var(--{name})", "#123456")
        go.Figure(eval(text))  # raises for a property that plotly does not know


def test_growth_says_when_most_of_it_was_there(results: tuple[TrialResult, ...], study: Study) -> None:
    grown = growth(find(results, study))
    assert grown is not None
    drawn, said = grown

    assert "95 % of it was there after trial " in said
    assert drawn["data"][0]["x"] == [result.number for result in results]


def test_without_a_worst_corner_nothing_grew() -> None:
    study = study_of(1, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    results = [measured(0, {}, objectives={"loss": 0.5}, measures={}, constraints={}, feasible=True)]

    assert growth(find(results, study)) is None
