from __future__ import annotations

from typing import Any

import pytest

from memsweep.findings.find import find
from memsweep.findings.views import views
from memsweep.findings.words import CHANGES
from memsweep.record.outcome import Measured, OutOfMemory, Phase
from memsweep.record.study import Constraint, Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.report.scatter import MOST_BARS, SYMBOLS, figure
from memsweep.report.sheet import color_of
from memsweep.report.tables import GLYPHS
from memsweep.units import GIB, MIB
from synthetic import ended, measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def points(drawn: dict[str, Any]) -> dict[int, tuple[float, float]]:
    """Return trial number to coordinates, of every point in a figure."""
    return {
        number: (x, y)
        for trace in drawn["data"]
        if trace["mode"] == "markers"
        for number, x, y in zip(trace["customdata"], trace["x"], trace["y"], strict=True)
    }


def drawn_from(results: tuple[TrialResult, ...], study: Study) -> dict[str, Any]:
    return figure(find(results, study), {result.number: "a reason" for result in results})


def test_plotly_takes_the_figure(results: tuple[TrialResult, ...], study: Study) -> None:
    go = pytest.importorskip("plotly.graph_objects")
    drawn = drawn_from(results, study)
    text = repr(drawn)
    for name in ("paper", "card", "ink", "faint", "line", "bad", *(f"group-{n}" for n in range(6))):
        text = text.replace(f"var(--{name})", "#123456")
    go.Figure(eval(text))  # raises for a property that plotly does not know


def test_every_measured_trial_is_one_point_at_what_it_measured(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    expected = {
        result.number: (result.objectives["peak_memory_bytes"] / MIB, result.objectives["tokens_per_second"])
        for result in results
        if result.objectives and result.reused_from is None
    }

    assert points(drawn_from(results, study)) == expected


def test_a_trial_that_was_not_measured_is_nowhere(study: Study) -> None:
    oom = OutOfMemory(
        where="device", phase=Phase.BUILD, requested_bytes=1, held_bytes=2, evidence="out of memory"
    )
    drawn = drawn_from((measured(0, BASELINE), ended(1, BASELINE, oom)), study)

    assert set(points(drawn)) == {0}
    assert "trial 1" not in repr(drawn)


def test_the_front_of_each_view_is_drawn_from_least_to_most_memory(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    lines = [trace for trace in drawn_from(results, study)["data"] if trace["mode"] == "lines"]

    assert [line["meta"]["view"] for line in lines] == list(range(len(views(find(results, study)))))
    for line, view in zip(lines, views(find(results, study)), strict=True):
        assert line["x"] == sorted(line["x"])
        assert line["y"] == sorted(line["y"])
        assert len(line["x"]) == len(view.front)
        assert line["line"]["shape"] == "hv"


def test_hover_escapes_what_a_study_says(study: Study) -> None:
    result = measured(0, BASELINE, parameters={"note": "<b>&"}, overrides=("note=<b>&",))

    trace = drawn_from((result,), study)["data"][-1]

    assert "note=&lt;b&gt;&amp;" in trace["text"][0]


def test_the_memory_budget_is_a_line(results: tuple[TrialResult, ...], study: Study) -> None:
    layout = drawn_from(results, study)["layout"]

    assert [shape["x0"] for shape in layout["shapes"]] == [520.0]
    assert "limit 520.0 MiB" in [note["text"] for note in layout["annotations"]]


def test_a_budget_far_away_is_named_and_not_drawn(results: tuple[TrialResult, ...]) -> None:
    far = Constraint(measure="peak_memory_bytes", upper=True, bound=80.0 * GIB)
    layout = drawn_from(results, study_of(24, constraints={"memory_budget": far}))["layout"]

    assert layout["shapes"] == []
    assert "limit 80.0 GiB, far to the right \N{RIGHTWARDS ARROW}" in [
        note["text"] for note in layout["annotations"]
    ]


def test_one_objective_is_drawn_over_the_trials_numbers() -> None:
    study = study_of(2, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    results = tuple(
        measured(number, {}, objectives={"loss": 0.5 + number}, measures={}, constraints={}, feasible=True)
        for number in range(2)
    )

    drawn = drawn_from(results, study)

    assert points(drawn) == {0: (0, 0.5), 1: (1, 1.5)}
    assert drawn["layout"]["xaxis"]["title"]["text"] == "trial"


def test_three_objectives_have_no_line() -> None:
    names = {"tokens_per_second": Direction.MAXIMIZE, "peak_memory_bytes": Direction.MINIMIZE}
    study = study_of(1, objectives={**names, "loss": Direction.MINIMIZE}, constraints={}, reference={})
    result = measured(0, BASELINE)
    result = measured(0, BASELINE, objectives={**result.objectives, "loss": 1.0})

    assert [trace["mode"] for trace in drawn_from((result,), study)["data"]] == ["markers"]


def test_every_symbol_has_a_character_for_the_legend() -> None:
    assert set(SYMBOLS) <= set(GLYPHS)


def test_no_two_groups_look_the_same() -> None:
    groups = range(2 ** len(CHANGES))

    assert len({(color_of(group), group % len(SYMBOLS)) for group in groups}) == len(groups)
    assert [group for group in groups if color_of(group) == color_of(0)] == [0]


def test_a_thousand_trials_are_drawn() -> None:
    results = trials_of_every_kind(1_000)

    assert len(points(drawn_from(results, study_of(1_000)))) == len(find(results, study_of(1_000)).measured)


def test_of_many_trials_only_members_of_fronts_show_their_intervals() -> None:
    results = trials_of_every_kind(1_000)
    study = study_of(1_000)
    members = {result.number for view in views(find(results, study)) for result in view.front}
    assert len(find(results, study).measured) > MOST_BARS

    shown = {
        number
        for trace in drawn_from(results, study)["data"]
        if "error_x" in trace
        for number, arm in zip(trace["customdata"], trace["error_x"]["array"], strict=True)
        if arm is not None
    }

    assert shown == members


def test_error_bars_reach_as_far_as_the_intervals_and_are_only_where_there_is_one(study: Study) -> None:
    known, unknown = measured(0, BASELINE), measured(1, {**BASELINE, "packing": "baseline"})
    speed = known.objectives["tokens_per_second"]
    outcome = Measured(measures=known.measures, intervals={"tokens_per_second": (speed - 30, speed + 40)})
    known = measured(0, BASELINE, outcome=outcome)

    (trace,) = (t for t in drawn_from((known, unknown), study)["data"] if t["mode"] == "markers")

    assert trace["error_y"]["array"] == pytest.approx([40, None])
    assert trace["error_y"]["arrayminus"] == pytest.approx([30, None])
    memory_mib = known.objectives["peak_memory_bytes"] / MIB
    assert trace["error_x"]["array"] == pytest.approx([0.01 * memory_mib] * 2)


def test_an_app_whose_spread_is_not_known_has_no_error_bars() -> None:
    study = study_of(1, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    result = measured(0, {}, objectives={"loss": 0.5}, measures={"loss": 0.5}, constraints={}, feasible=True)

    assert not [key for t in drawn_from((result,), study)["data"] for key in t if key.startswith("error")]
