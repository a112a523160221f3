"""How sure a trial's figures are: 95 % intervals, and which trials they cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median, stdev

import numpy as np
from numpy.typing import NDArray

from memsweep.record.comparable import MEMORY_SPREAD
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialResult
from memsweep.student import t_quantile_95

Interval = tuple[float, float]
"""The lowest and the highest value that a measure may have, with 95 % confidence."""


def n_runs(result: TrialResult) -> int:
    """Return in how many runs a measured trial was measured."""
    return 1 + sum(isinstance(repeat, Measured) for repeat in result.repeats)


def interval(result: TrialResult, name: str) -> Interval | None:
    """Return the 95 % interval of a trial's measure; None where nothing is known of its spread.

    With several runs, Student's interval of their mean, widened where it does not hold their median, which
    is the value shown: runs differ by more than passes of one run do.  With one run, what the run says
    itself; failing that, the spread of the instrument where the measure is one of a technique's memory.

    Args:
        result: A trial with measures of its own.
        name: The measure.
    """
    values = result.values(name)
    if len(values) > 1:
        center, middle = mean(values), median(values)
        arm = t_quantile_95(len(values) - 1) * stdev(values) / len(values) ** 0.5
        return min(center - arm, middle), max(center + arm, middle)
    if not values:
        return None
    if isinstance(result.outcome, Measured) and name in result.outcome.intervals:
        return result.outcome.intervals[name]
    # The bytes of another app may be anything, the size of a file for one, which has no spread.
    if name.endswith("_bytes") and result.choice:
        return values[0] * (1 - MEMORY_SPREAD), values[0] * (1 + MEMORY_SPREAD)
    return None


def ends(result: TrialResult) -> dict[str, float]:
    """Return the known intervals of a trial's objectives as numbers: `<name>_low` and `<name>_high`."""
    found = {}
    for name in result.objectives:
        bounds = interval(result, name)
        if bounds is not None:
            found[f"{name}_low"], found[f"{name}_high"] = bounds
    return found


def ties(
    trials: Sequence[TrialResult], members: Sequence[TrialResult], objectives: Sequence[str]
) -> dict[int, tuple[int, ...]]:
    """Return the number of each trial that is tied with members of a front, with those members' numbers.

    Trials are tied when their intervals overlap in every objective.  A value whose spread is not known
    counts as exact, so that nothing is called a tie without evidence.

    Args:
        trials: The trials that are asked about; a member among them is not tied with itself.
        members: The front.
        objectives: Names of what they are compared in.
    """
    if not trials or not members:
        return {}
    low, high = _bounds(trials, objectives)
    member_low, member_high = _bounds(members, objectives)
    overlap = np.asarray((low[:, None] <= member_high[None]) & (member_low[None] <= high[:, None]))
    tied = np.asarray(overlap.all(axis=2))
    numbers = np.array([member.number for member in members])
    found = {}
    for trial, is_tied in zip(trials, tied, strict=True):
        others = tuple(int(number) for number in numbers[is_tied] if number != trial.number)
        if others:
            found[trial.number] = others
    return found


def _bounds(
    trials: Sequence[TrialResult], objectives: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (n_trials, n_objectives) lower and upper ends of intervals."""
    both = np.array([[_interval_or_value(trial, name) for name in objectives] for trial in trials])
    both = both.reshape(len(trials), len(objectives), 2)
    return both[..., 0], both[..., 1]


def _interval_or_value(result: TrialResult, name: str) -> Interval:
    value = result.objectives[name]
    return interval(result, name) or (value, value)
