from __future__ import annotations

import dataclasses

import pytest

from memsweep.findings.find import find
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.tracking.plots import effect_bars, parallel_coordinates


def test_parallel_coordinates_have_a_line_a_measured_trial_and_an_axis_a_varied_choice(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results, study)

    (drawn,) = parallel_coordinates(findings).to_plotly_json()["data"]
    axes = {axis["label"]: axis for axis in drawn["dimensions"]}

    assert {"adapter", "packing", "throughput", "peak memory"} <= set(axes)
    assert all(len(axis["values"]) == len(findings.measured) for axis in axes.values())
    assert list(axes["adapter"]["ticktext"]) == ["baseline", "lora"]
    labels = dict(zip(axes["adapter"]["tickvals"], axes["adapter"]["ticktext"], strict=True))
    shown = [labels[place] for place in axes["adapter"]["values"]]
    assert shown == [result.choice["adapter"] for result in findings.measured]


def test_numbers_have_an_axis_of_numbers_and_words_beside_them_come_last(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    searched = [{"lr": "1e-4", "rank": "16"}, {"lr": "1e-5", "rank": "8"}, {"lr": "1e-3"}]
    trials = [
        dataclasses.replace(results[0], number=number, parameters=parameters)
        for number, parameters in enumerate(searched)
    ]

    (drawn,) = parallel_coordinates(find(trials, study)).to_plotly_json()["data"]
    axes = {axis["label"]: axis for axis in drawn["dimensions"]}

    assert list(axes["lr"]["values"]) == [1e-4, 1e-5, 1e-3]
    assert list(axes["rank"]["ticktext"]) == ["8", "16", "(none)"]


@pytest.mark.parametrize("n_trials", [0, 1])
def test_nothing_is_drawn_where_nothing_can_be_compared(
    n_trials: int, study: Study, results: tuple[TrialResult, ...]
) -> None:
    findings = find(results[:n_trials], study)

    assert parallel_coordinates(findings) is None
    assert effect_bars(findings) is None


def test_an_effects_bar_ends_at_its_factor(study: Study, results: tuple[TrialResult, ...]) -> None:
    drawn = effect_bars(find(results[:6], study)).to_plotly_json()["data"]
    speed = next(bars for bars in drawn if bars["name"] == "throughput")
    factors = dict(zip(speed["y"], (1 + length for length in speed["x"]), strict=True))

    assert speed["base"] == 1
    assert factors["truncation=max_length"] == pytest.approx(1.05, rel=1e-3)
