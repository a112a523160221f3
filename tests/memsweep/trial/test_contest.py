"""When a trial that is being measured is given up, and when it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from memsweep.measure.throughput import Throughput
from memsweep.record.rivals import Rival, Rivals
from memsweep.record.study import Constraint, Direction
from memsweep.trial.contest import Contest
from memsweep.units import MIB

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE
BEST = Rival(
    number=3,
    objectives={"tokens_per_second": 1000.0, "peak_memory_bytes": 400.0 * MIB},
    worst={"tokens_per_second": 950.0, "peak_memory_bytes": 404.0 * MIB},
)
RIVALS = Rivals(
    objectives={"tokens_per_second": UP, "peak_memory_bytes": DOWN},
    limits={"budget": Constraint(measure="peak_memory_bytes", upper=True, bound=600.0 * MIB)},
    best=(BEST,),
    conditions={"machine": "a", "data": "b"},
    versions={"torch": "2.13.0"},
)
EXACT = {"kept_tokens": 5000.0, "trained_parameters": 100.0}


def contest(rivals: Rivals | None = RIVALS, **changed: Any) -> Contest:
    given = {"exact": EXACT, "conditions": RIVALS.conditions, "versions": RIVALS.versions, **changed}
    return Contest(rivals, **given)


def peak(mib: float) -> dict[str, float]:
    return {"peak_memory_bytes": mib * MIB}


def rates(value: float, interval: Sequence[float] = ()) -> Throughput:
    low, high = interval or (value, value)
    measures = {"tokens_per_second": value, "measured_seconds": 9.0}
    return Throughput(measures, {"tokens_per_second": (low, high)})


def pace(
    value: float,
    interval: Sequence[float] = (),
    *,
    mib: float = 500,
    n: int = 3,
    n_ahead: int = 9,
    **changed: Any,
) -> str | None:
    held = contest(**changed)
    return held.lost_by_pace(peak(mib), rates(value, interval), n, n_ahead, precision=0.03)


def test_a_single_pass_ahead_is_not_worth_giving_a_trial_up() -> None:
    assert pace(800, n_ahead=1) is None
    assert pace(800, n_ahead=2) is not None


def test_memory_beyond_a_demand_ends_a_trial_before_any_pass() -> None:
    assert contest().lost_by_memory(peak(600)) is None
    assert contest().lost_by_memory(peak(700)) == (
        "beyond budget before the first timed pass: peak memory 700.0 MiB, at most 600.0 MiB"
    )


def test_a_demand_on_another_measure_is_not_judged_before_its_time() -> None:
    slow = Constraint(measure="seconds_per_step", upper=True, bound=1.0)
    rivals = replace(RIVALS, limits={"fast": slow})

    assert contest(rivals).lost_by_memory({**peak(100), "seconds_per_step": 2.0}) is None


def test_worse_memory_alone_ends_nothing_where_speed_counts_too() -> None:
    assert contest().lost_by_memory(peak(500)) is None


def test_worse_memory_ends_a_trial_where_nothing_else_counts() -> None:
    rivals = replace(RIVALS, objectives={"peak_memory_bytes": DOWN})

    assert contest(rivals).lost_by_memory(peak(500)) == (
        "worse than trial 3 beyond noise: peak memory 500.0 MiB, against peak memory 400.0 MiB"
    )
    assert contest(rivals).lost_by_memory(peak(405)) is None


def test_worse_beyond_noise_in_both_names_the_trial_and_the_figures() -> None:
    assert pace(800, (780, 820)) == (
        "worse than trial 3 beyond noise: 800 tokens/s and peak memory 500.0 MiB, "
        "against 1,000 tokens/s and peak memory 400.0 MiB"
    )


@pytest.mark.parametrize(
    ("value", "interval", "mib"),
    [
        (800, (640, 960), 500),  # at best it is as fast as the other at worst
        (940, (930, 951), 500),
        (800, (780, 820), 408),  # within 2 % of the other's memory
        (800, (780, 820), 300),
        (1200, (1190, 1210), 500),
    ],
)
def test_what_may_still_be_better_in_one_is_measured_on(
    value: float, interval: tuple[float, float], mib: float
) -> None:
    assert pace(value, interval, mib=mib) is None


def test_memory_is_worse_from_two_percent_on() -> None:
    assert pace(800, mib=400 * 1.02) is None
    assert pace(800, mib=400 * 1.021) is not None


def test_two_passes_may_be_off_by_twice_the_precision_whatever_their_interval() -> None:
    wide, narrow = (0, 5000), (890, 910)

    assert pace(890, wide, n=2) is not None  # 890 * 1.06 < 950
    assert pace(900, narrow, n=2) is None  # 900 * 1.06 > 950
    assert pace(890, wide, n=3) is None
    assert pace(900, narrow, n=3) is not None


def test_any_of_several_rivals_may_be_the_one_that_is_better() -> None:
    small = Rival(
        number=5,
        objectives={"tokens_per_second": 500.0, "peak_memory_bytes": 100.0 * MIB},
        worst={"tokens_per_second": 490.0, "peak_memory_bytes": 101.0 * MIB},
    )
    found = pace(400, mib=200, rivals=replace(RIVALS, best=(BEST, small)))

    assert found is not None
    assert found.startswith("worse than trial 5")


def test_two_rivals_that_are_each_better_in_one_end_nothing() -> None:
    fast = replace(BEST, worst={"tokens_per_second": 2000.0, "peak_memory_bytes": 900.0 * MIB})
    small = replace(BEST, worst={"tokens_per_second": 100.0, "peak_memory_bytes": 50.0 * MIB})

    assert pace(800, rivals=replace(RIVALS, best=(fast, small))) is None


@pytest.mark.parametrize("name", ["loss", "measured_seconds", "padding_share", "accuracy"])
def test_an_objective_that_is_not_known_yet_keeps_every_trial_going(name: str) -> None:
    objectives = {**RIVALS.objectives, name: DOWN}
    better = replace(BEST, objectives={**BEST.objectives, name: 0.0}, worst={**BEST.worst, name: 0.0})
    rivals = replace(RIVALS, objectives=objectives, best=(better,))

    assert pace(100, (90, 110), rivals=rivals) is None


@pytest.mark.parametrize(("kept", "is_lost"), [(4000, False), (5000, True), (6000, True)])
def test_what_preparation_decides_is_compared_exactly(kept: float, is_lost: bool) -> None:
    objectives = {**RIVALS.objectives, "kept_tokens": UP}
    other = replace(
        BEST,
        objectives={**BEST.objectives, "kept_tokens": kept},
        worst={**BEST.worst, "kept_tokens": kept},
    )

    found = pace(800, (780, 820), rivals=replace(RIVALS, objectives=objectives, best=(other,)))

    assert (found is not None) is is_lost


def test_equal_counts_alone_are_no_reason() -> None:
    same = Rival(number=3, objectives={"kept_tokens": 5000.0}, worst={"kept_tokens": 5000.0})
    rivals = Rivals(objectives={"kept_tokens": UP}, best=(same,))

    assert contest(rivals, conditions={}, versions={}).lost_by_memory({}) is None


@pytest.mark.parametrize(
    "apart",
    [{"conditions": {"machine": "a", "data": "other"}}, {"versions": {"torch": "2.14.0"}}],
    ids=["data", "versions"],
)
def test_a_trial_under_other_conditions_is_compared_with_nobody(apart: dict[str, Any]) -> None:
    assert pace(1, (1, 1), **apart) is None


def test_a_demand_holds_under_whatever_conditions() -> None:
    held = contest(conditions={"machine": "a", "data": "other"})

    assert held.lost_by_memory(peak(700)) is not None


def test_without_rivals_a_trial_is_measured_to_its_end() -> None:
    assert contest(None).lost_by_memory(peak(1e6)) is None
    assert pace(1, (1, 1), rivals=None) is None
    assert pace(1, (1, 1), rivals=replace(RIVALS, best=())) is None
