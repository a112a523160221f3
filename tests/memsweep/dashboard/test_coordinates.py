from __future__ import annotations

from memsweep.dashboard.coordinates import MOST_AXES, parallel_picture
from memsweep.findings.find import find
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import measured


def picture_of(study: Study, results: tuple[TrialResult, ...]) -> dict | None:  # type: ignore[type-arg]
    return parallel_picture(find(results, study))


def test_every_measured_trial_is_one_line_over_what_was_varied(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    picture = picture_of(study, results)

    assert picture is not None
    titles = [note["text"] for note in picture["layout"]["annotations"] if note["y"] == -0.1]
    assert titles[-2:] == ["throughput", "peak<br>memory"]
    n_lines = sum(trace["x"].count(None) for trace in picture["data"])
    assert n_lines == len(find(results, study).measured)
    for trace in picture["data"]:
        assert trace["x"].count(0) == trace["x"].count(None)


def test_the_front_is_a_group_of_its_own_without_infeasible_trials(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    picture = picture_of(study, results)

    assert picture is not None
    groups = {trace["name"]: trace["x"].count(None) for trace in picture["data"]}
    assert groups["on the feasible front"] == len(find(results, study).front)


def test_what_nobody_varied_has_no_axis(study: Study) -> None:
    same = tuple(measured(number, {"adapter": "lora"}) for number in range(3))

    assert picture_of(study, same) is None
    assert picture_of(study, ()) is None


def test_a_line_is_broken_where_a_choice_does_not_exist(study: Study) -> None:
    results = (
        measured(0, {}, parameters={"a": "x", "b": "1"}),
        measured(1, {}, parameters={"a": "y"}),
        measured(2, {}, parameters={"a": "x", "b": "2"}),
    )

    picture = picture_of(study, results)

    assert picture is not None
    heights = [y for trace in picture["data"] for x, y in zip(trace["x"], trace["y"], strict=True) if x == 1]
    assert sorted(y is None for y in heights) == [False, False, True]


def test_more_choices_than_can_be_told_apart_are_cut_to_those_with_most_values(study: Study) -> None:
    many = {f"k{n}": str(n % 2) for n in range(20)}
    results = tuple(
        measured(number, {}, parameters={key: f"{int(value) * number}" for key, value in many.items()})
        for number in range(4)
    )
    results = (*results, measured(4, {}, parameters=dict.fromkeys(many, "7")))

    picture = picture_of(study, results)

    assert picture is not None
    assert len(picture["layout"]["shapes"]) == MOST_AXES + 2
