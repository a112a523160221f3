"""Intervals from several runs, from one run, from the instrument; and what they cannot tell apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memsweep.findings.intervals import MEMORY_SPREAD, ends, interval, n_runs, ties
from memsweep.record.outcome import Crashed, Measured, Phase
from memsweep.record.trial import TrialResult
from synthetic import measured

NAMES = ("tokens_per_second", "peak_memory_bytes")
CHOICE = {"adapter": "baseline"}


def trial(number: int, speed: float, memory: float = 100.0, half: float | None = None) -> TrialResult:
    """Return a trial with these figures, its speed known to +- `half`."""
    measures = {"tokens_per_second": speed, "peak_memory_bytes": memory}
    intervals = {} if half is None else {"tokens_per_second": (speed - half, speed + half)}
    outcome = Measured(measures=measures, intervals=intervals)
    return measured(number, CHOICE, outcome=outcome, measures=measures, objectives=measures)


def again(result: TrialResult, *speeds: float) -> TrialResult:
    """Return a trial with further runs that measured these speeds."""
    repeats = [Measured(measures={"tokens_per_second": speed}) for speed in speeds]
    return replace(result, repeats=(*result.repeats, *repeats))


def test_several_runs_give_students_interval_of_their_mean() -> None:
    low, high = interval(again(trial(0, 10.0), 11.0, 12.0), "tokens_per_second") or (0.0, 0.0)

    assert (low, high) == pytest.approx((11 - 4.303 / 3**0.5, 11 + 4.303 / 3**0.5))


def test_the_interval_of_several_runs_holds_their_median() -> None:
    runs = again(trial(0, 1.0), *[1.0] * 20, *[100.0] * 19)
    low, high = interval(runs, "tokens_per_second") or (0.0, 0.0)

    assert low <= runs.medians["tokens_per_second"] <= high
    assert low == 1.0


def test_one_run_has_the_interval_that_it_says_itself() -> None:
    assert interval(trial(0, 100.0, half=3.0), "tokens_per_second") == (97.0, 103.0)


def test_one_run_says_nothing_where_several_disagree() -> None:
    low, high = interval(again(trial(0, 100.0, half=0.1), 120.0), "tokens_per_second") or (0.0, 0.0)

    assert high - low > 20


def test_memory_of_one_run_has_the_spread_of_the_instrument() -> None:
    low, high = interval(trial(0, 1.0, memory=200.0), "peak_memory_bytes") or (0.0, 0.0)

    assert (low, high) == pytest.approx((200 * (1 - MEMORY_SPREAD), 200 * (1 + MEMORY_SPREAD)))


def test_nothing_is_made_up_where_no_spread_is_known() -> None:
    other_app = replace(trial(0, 1.0), choice={})

    assert interval(trial(0, 1.0), "tokens_per_second") is None
    assert interval(other_app, "peak_memory_bytes") is None
    assert interval(trial(0, 1.0), "not_measured") is None


def test_a_run_that_gave_no_figures_is_none_of_the_runs() -> None:
    crashed = replace(trial(0, 1.0, half=0.5), repeats=(Crashed(reason="a test", phase=Phase.BUILD),))

    assert interval(crashed, "tokens_per_second") == (0.5, 1.5)
    assert n_runs(crashed) == 1
    assert n_runs(again(crashed, 2.0)) == 2


def test_ends_are_named_after_their_objective() -> None:
    assert ends(trial(0, 100.0, memory=200.0, half=3.0)) == {
        "tokens_per_second_low": 97.0,
        "tokens_per_second_high": 103.0,
        "peak_memory_bytes_low": pytest.approx(198.0),
        "peak_memory_bytes_high": pytest.approx(202.0),
    }


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (trial(1, 104.0, half=2.0), True),
        (trial(1, 106.0, half=2.0), False),
        (trial(1, 104.0, memory=103.0, half=2.0), False),
        (trial(1, 102.0), True),
        (trial(1, 104.0), False),
    ],
)
def test_trials_are_tied_when_their_intervals_overlap_in_every_objective(
    other: TrialResult, expected: bool
) -> None:
    one = trial(0, 100.0, half=3.0)

    assert ties([one], [other], NAMES) == ({0: (1,)} if expected else {})
    assert ties([other], [one], NAMES) == ({1: (0,)} if expected else {})


def test_a_member_is_not_tied_with_itself() -> None:
    members = [trial(0, 100.0, half=3.0), trial(1, 104.0, half=2.0), trial(2, 200.0, half=2.0)]

    assert ties(members, members, NAMES) == {0: (1,), 1: (0,)}
