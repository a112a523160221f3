from __future__ import annotations

import dataclasses
import math

import pytest

from memsweep.findings.find import find
from memsweep.findings.gains import (
    Gain,
    brief_text,
    comparison,
    gain_text,
    gains,
    ratio_interval,
    source,
    times_text,
)
from memsweep.record.outcome import Measured, Reused
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import measured

BASELINE = {"adapter": "baseline"}


def known(number: int, speed: float, half: float) -> TrialResult:
    """Return a trial whose throughput is known to +- `half` tokens per second."""
    objectives = {"tokens_per_second": speed, "peak_memory_bytes": 1_000.0}
    outcome = Measured(measures=objectives, intervals={"tokens_per_second": (speed - half, speed + half)})
    return measured(number, BASELINE, outcome=outcome, objectives=objectives, measures=objectives)


def test_an_interval_adds_the_arms_of_both_as_squares_of_logarithms() -> None:
    low, high = ratio_interval(200.0, (180.0, 210.0), 100.0, (95.0, 120.0)) or (0.0, 0.0)

    assert low == pytest.approx(2 * math.exp(-math.hypot(math.log(200 / 180), math.log(1.2))))
    assert high == pytest.approx(2 * math.exp(math.hypot(math.log(210 / 200), math.log(100 / 95))))


def test_no_interval_is_made_up_where_one_is_not_known() -> None:
    assert ratio_interval(2.0, None, 1.0, (0.9, 1.1)) is None
    assert ratio_interval(2.0, (1.9, 2.1), 1.0, None) is None


def test_an_interval_that_reaches_zero_makes_the_ratio_hardly_known() -> None:
    for bounds in ((0.0, 2.0), (-1.0, 3.0)):
        gain = Gain(ratio=2.0, interval=ratio_interval(2.0, (1.9, 2.1), 1.0, bounds))

        assert gain_text(gain) == "2.00 x (hardly known)"
        assert not gain.is_sure


def test_a_gain_is_sure_when_its_interval_leaves_one_out(study: Study) -> None:
    one, near, far = known(0, 100.0, 5.0), known(1, 104.0, 5.0), known(2, 150.0, 5.0)
    found = find([one, near, far], study)

    assert gains(found, near, one)["tokens_per_second"].is_sure is False
    assert gains(found, far, one)["tokens_per_second"].is_sure is True
    assert gains(found, far, one)["tokens_per_second"].ratio == 1.5


def test_one_measurement_differs_from_itself_by_nothing(study: Study) -> None:
    one = known(0, 100.0, 5.0)
    twin = dataclasses.replace(one, number=1, outcome=Reused(trial=0, measures=one.measures), reused_from=0)
    found = find([one, twin], study)

    assert source(twin) == source(one) == 0
    assert gains(found, twin, one)["tokens_per_second"] == Gain(ratio=1.0, interval=(1.0, 1.0))


def test_an_objective_that_is_not_above_zero_has_no_ratio(study: Study) -> None:
    one = known(0, 100.0, 5.0)
    other = dataclasses.replace(one, number=1, objectives={**one.objectives, "tokens_per_second": 0.0})

    assert set(gains(find([one, other], study), other, one)) == {"peak_memory_bytes"}


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (Gain(ratio=1.27, interval=(1.2, 1.34)), "1.27 x (1.20 to 1.34)"),
        (Gain(ratio=1.27, interval=None), "1.27 x"),
        (Gain(ratio=1.0, interval=(1.0, 1.0)), "1.00 x"),
        (Gain(ratio=2.0, interval=(0.01, 400.0)), "2.00 x (hardly known)"),
        (Gain(ratio=1234.0, interval=None), "1,234 x"),
    ],
)
def test_gains_are_told_in_few_characters(gain: Gain, expected: str) -> None:
    assert gain_text(gain) == expected


@pytest.mark.parametrize(
    ("gain", "words", "brief"),
    [
        (Gain(ratio=1.27, interval=(1.2, 1.34)), "1.27 times its throughput (1.20 to 1.34)", "1.27 x"),
        (
            Gain(ratio=1.1, interval=(0.9, 1.3)),
            "1.10 times its throughput (0.90 to 1.30, so perhaps no difference)",
            "1.10 x?",
        ),
        (Gain(ratio=2.0, interval=(0.01, 400.0)), "2.00 times its throughput (hardly known)", "2.00 x?"),
        (Gain(ratio=1.0, interval=(1.0, 1.0)), "1.00 times its throughput", "1.00 x"),
        (Gain(ratio=1.5, interval=None), "1.50 times its throughput", "1.50 x"),
    ],
)
def test_a_doubtful_gain_is_said_to_be_so(gain: Gain, words: str, brief: str) -> None:
    assert times_text(gain, "tokens_per_second") == words
    assert brief_text(gain) == brief


def test_nothing_is_compared_with_a_baseline_that_is_not_there(study: Study) -> None:
    lora = measured(1, {"adapter": "lora"})

    assert comparison(find([lora], study), lora) == ""
