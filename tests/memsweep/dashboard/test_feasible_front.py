from __future__ import annotations

import dataclasses
import json

from memsweep.dashboard.feasible_front import front_picture
from memsweep.findings.find import find
from memsweep.findings.scale import scales
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult


def picture_of(study: Study, results: tuple[TrialResult, ...]) -> dict:  # type: ignore[type-arg]
    return front_picture(find(results, study), scales(study, results))


def test_the_line_goes_through_the_feasible_front_and_nothing_else(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)
    speed, memory = scales(study, results)

    line = picture_of(study, results)["data"][0]

    assert line["name"] == "the feasible front"
    assert set(zip(line["x"], line["y"], strict=True)) == {
        (memory.shown(r.objectives[memory.name]), speed.shown(r.objectives[speed.name]))
        for r in findings.front
    }


def test_infeasible_trials_are_apart_and_unmeasured_ones_have_no_point(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)

    points = [trace for trace in picture_of(study, results)["data"] if trace["mode"] != "lines"]

    *groups, infeasible = points
    assert infeasible["name"] == "measured, not feasible"
    assert len(infeasible["x"]) == sum(not result.feasible for result in findings.measured)
    assert sum(len(trace["x"]) for trace in points) == len(findings.measured)
    assert set(infeasible["text"]) == {""}
    assert any(text for trace in groups for text in trace["text"])


def test_more_kinds_of_changes_than_the_legend_has_room_for_are_told_apart_by_how_much_they_change(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    words = ("batch", "data", "numerics", "trained_parameters")
    kinds = [(), *((word,) for word in words), words[:2]]
    trials = tuple(
        dataclasses.replace(results[0], number=number, changes=kind) for number, kind in enumerate(kinds)
    )

    points = [trace for trace in picture_of(study, trials)["data"] if trace["mode"] != "lines"]

    assert [len(trace["x"]) for trace in points] == [1, 4, 1]
    assert len({(trace["marker"]["symbol"], trace["marker"]["color"]) for trace in points}) == 3


def test_the_limit_is_a_line_of_its_own(study: Study, results: tuple[TrialResult, ...]) -> None:
    layout = picture_of(study, results)["layout"]

    assert [shape["x0"] for shape in layout["shapes"]] == [520.0]
    assert layout["annotations"][1]["text"] == "limit 520.0 MiB"


def test_a_single_objective_is_drawn_over_the_trials(study: Study, results: tuple[TrialResult, ...]) -> None:
    single = dataclasses.replace(study, objectives={"tokens_per_second": Direction.MAXIMIZE})

    picture = picture_of(single, results)

    assert picture["layout"]["xaxis"]["title"]["text"] == "trial"
    assert all(trace["mode"] != "lines" for trace in picture["data"])


def test_a_study_without_trials_has_an_empty_picture(study: Study) -> None:
    assert picture_of(study, ())["data"] == [
        {**trace, "x": [], "y": []} for trace in picture_of(study, ())["data"]
    ]


def test_text_that_hovers_is_no_markup(study: Study, results: tuple[TrialResult, ...]) -> None:
    hostile = dataclasses.replace(results[0], choice={"x": "<img src=x onerror=alert(1)>"})

    assert "<img" not in json.dumps(picture_of(study, (hostile,)))
