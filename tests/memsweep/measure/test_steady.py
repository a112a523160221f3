from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from memsweep.measure.meter import Reading
from memsweep.measure.steady import SteadyState, Window, estimate
from memsweep.measure.tokens import TokenCount


def window(rate: float, seconds: float = 2.0) -> Window:
    """Return a window in which so many tokens a second were trained on."""
    tokens = round(rate * seconds)
    return Window(seconds, Reading(TokenCount(tokens, tokens)))


def run(rates: Iterable[float], steady: SteadyState | None = None) -> SteadyState:
    """Give windows until there are enough."""
    steady = steady or SteadyState(precision=0.03, min_windows=3, max_windows=10, max_seconds=1000)
    for rate in rates:
        if steady.add(window(rate)):
            break
    return steady


def test_windows_that_agree_from_the_first_need_no_warm_up() -> None:
    steady = run([1000, 1001, 1000, 1002])

    assert (len(steady.windows), steady.n_warm_up, steady.is_settled) == (3, 0, True)
    assert steady.remark is None


def test_windows_before_the_first_that_agree_do_not_count() -> None:
    steady = run([400, 700, 1000, 1004, 1001, 1003])

    assert (len(steady.windows), steady.n_warm_up) == (5, 2)
    found = estimate(steady.measured, lambda one: one.tokens)
    assert found is not None
    assert found.value == pytest.approx(1001.7, abs=0.1)


def test_windows_that_may_follow_become_fewer() -> None:
    steady = SteadyState(precision=0.03, min_windows=2, max_windows=3, max_seconds=1000)
    left = [steady.n_left]
    for rate in (400, 1000, 700):
        steady.add(window(rate))
        left.append(steady.n_left)

    assert left == [3, 2, 1, 0]


def test_warm_up_is_over_once_two_in_a_row_agree() -> None:
    steady = SteadyState(precision=0.03, min_windows=3, max_windows=10, max_seconds=1000)
    warm = []
    for rate in (400, 1000, 700, 710):
        steady.add(window(rate))
        warm.append(steady.is_warm)

    assert warm == [False, False, False, True]


def test_a_rate_that_varies_takes_more_windows() -> None:
    steady = run([1000, 1030, 970, 1030, 970, 1030, 970, 1030, 970, 1030])

    assert 3 < len(steady.windows) <= 10


def test_what_never_settles_says_so_and_leaves_how_well_it_is_known_to_the_figure() -> None:
    steady = run([1000, 1000, 1500, 600, 1400, 700, 1300, 800, 1500, 600])

    assert (len(steady.windows), steady.is_settled) == (10, False)
    assert steady.remark is not None
    assert steady.remark == "unsettled: 10 passes did not bring it within measure.precision=0.03"


def test_windows_that_never_agree_leave_the_last_ones() -> None:
    steady = run(1000 * 1.5**n for n in range(10))

    assert (steady.n_warm_up, len(steady.measured)) == (7, 3)
    assert steady.remark is not None
    assert "no two in a row agreed" in steady.remark


def test_no_window_follows_when_the_time_is_up() -> None:
    slow = SteadyState(precision=0.03, min_windows=3, max_windows=10, max_seconds=5)

    run([1000, 1500, 1000, 1500], slow)

    assert len(slow.windows) == 3  # two seconds each


def test_one_window_is_not_enough_though_the_time_is_up() -> None:
    slow = SteadyState(precision=0.03, min_windows=3, max_windows=10, max_seconds=1)

    assert slow.add(window(1000)) is False
    assert slow.add(window(1000)) is True


def test_a_pause_of_the_machine_widens_the_interval() -> None:
    calm = run([1000, 1000, 1000, 1000])
    paused = SteadyState(precision=0.001, min_windows=4, max_windows=4, max_seconds=1000)
    run([1000, 1000, 500, 1000], paused)

    assert calm.remark is None
    assert paused.remark is not None


def test_the_interval_holds_the_true_rate_nineteen_times_in_twenty() -> None:
    """Of 2,000 runs of 6 windows with normal noise: 95 % of intervals, give or take what chance allows."""
    chance = random.Random(0)
    held = 0
    for _ in range(2000):
        windows = [window(chance.gauss(10_000, 300), seconds=1.0) for _ in range(6)]
        found = estimate(windows, lambda one: one.tokens)
        assert found is not None
        held += found.low <= 10_000 <= found.high

    assert held / 2000 == pytest.approx(0.95, abs=0.015)


def test_the_value_is_all_tokens_over_all_seconds_not_the_mean_of_rates() -> None:
    windows = [window(1000, seconds=1.0), window(500, seconds=3.0)]

    found = estimate(windows, lambda one: one.tokens)

    assert found is not None
    assert found.value == 625


def test_an_interval_that_ends_at_zero_is_as_imprecise_as_it_reaches_above() -> None:
    found = estimate([window(660), window(840)], lambda one: one.tokens)

    assert found is not None
    assert found.low == 0
    assert found.precision == pytest.approx(found.high / found.value - 1)
    assert found.precision > 1


def test_warm_up_that_was_faster_than_what_counts_is_said_though_the_rate_is_settled() -> None:
    steady = SteadyState(precision=0.1, min_windows=2, max_windows=3, max_seconds=1000)
    run([2000, 1500, 1500], steady)

    assert steady.is_settled
    assert steady.remark == (
        "the first pass, left out as warm-up, was 33% faster than those that count: something slowed them"
    )


def test_warm_up_that_was_slower_is_what_warming_up_is() -> None:
    steady = SteadyState(precision=0.1, min_windows=2, max_windows=3, max_seconds=1000)
    run([1000, 1500, 1500], steady)

    assert steady.n_warm_up == 1
    assert steady.remark is None
