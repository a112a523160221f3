"""Can a trial that is being measured still come to something?

It is asked twice: when the peak of memory is known, before any pass is timed, and after each timed pass once
two have agreed, so that warm-up is over.  A trial that breaks its study's demand on memory, or that is worse
beyond noise in every objective than another trial, will be on no front, however long it is measured.

Beyond noise: what a rate may be at best, by the interval of its passes, is less than the other's is at worst;
and memory is above the other's by more than 2 %, which is how far identical trials lay apart.  Two passes
alone have an interval too wide to be of use (Student's t of one degree of freedom is 12.7), so there the rate
may be as much higher as twice the precision that was asked for.

A trial with an objective that is not known by then, a loss for one, is compared with nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

from memsweep.measure.throughput import Throughput
from memsweep.record.comparable import MEMORY_SPREAD, differences
from memsweep.record.rivals import Rival, Rivals
from memsweep.record.study import Direction
from memsweep.units import measure_text

WORTH_PASSES = 2
"""Timed passes that must be ahead for a trial to be given up for its pace.

A single one is 6 to 13 % of a trial (31 trials with measure=quick, which takes three at most), whose figures
would then be those of fewer passes.
"""

_RATE = "_per_second"
_BYTES = "_bytes"
_FEW = 2


class Contest:
    """Holds one trial against its rivals.

    Args:
        rivals: What it is held against; None lets it be measured to its end.
        exact: Measures that preparation alone decides, such as the tokens that it keeps.
        conditions: Under which the trial is measured.
        versions: Package to version, of those that can change its figures.
    """

    def __init__(
        self,
        rivals: Rivals | None,
        exact: Mapping[str, float],
        conditions: Mapping[str, str],
        versions: Mapping[str, str],
    ) -> None:
        self._rivals = rivals
        self._exact = dict(exact)
        self._best: tuple[Rival, ...] = ()
        if rivals is not None:
            apart = differences(conditions, rivals.conditions, "")
            apart += differences(versions, rivals.versions, "")
            self._best = () if apart else rivals.best

    def lost_by_memory(self, measured: Mapping[str, float]) -> str | None:
        """Return why the trial is over before any pass was timed; None when it is not.

        Args:
            measured: What is known of its memory: peaks, which can only grow.
        """
        if self._rivals is None:
            return None
        for name, limit in self._rivals.limits.items():
            missed = limit.violation(measured) if limit.measure.endswith(_BYTES) else None
            if missed is not None and missed > 0:
                value, bound = measured[limit.measure], limit.bound or 0.0
                allowed = measure_text(limit.measure, bound)
                return (
                    f"beyond {name} before the first timed pass: "
                    f"{_figure(limit.measure, value)}, at most {allowed}"
                )
        return self._beaten(measured, {})

    def lost_by_pace(
        self, measured: Mapping[str, float], rates: Throughput, n_passes: int, n_ahead: int, precision: float
    ) -> str | None:
        """Return why the trial is over after the passes so far; None when it is not.

        Args:
            measured: What is known of its memory.
            rates: Over the passes that count, of which two or more have agreed.
            n_passes: Passes that count.
            n_ahead: Passes that may follow.
            precision: Asked for: half of a rate's interval, as a share of the rate.
        """
        if n_ahead < WORTH_PASSES:
            return None
        found = {name: value for name, value in rates.measures.items() if name.endswith(_RATE)}
        ends = {name: rates.intervals[name] for name in found if name in rates.intervals}
        if n_passes <= _FEW:
            share = 2 * precision
            ends = {name: (value * (1 - share), value * (1 + share)) for name, value in found.items()}
        return self._beaten({**measured, **found}, ends)

    def _beaten(self, known: Mapping[str, float], ends: Mapping[str, tuple[float, float]]) -> str | None:
        if self._rivals is None:
            return None
        objectives = self._rivals.objectives
        values = {**self._exact, **known}
        if not all(name in values and self._has_known_noise(name, ends) for name in objectives):
            return None
        if all(name in self._exact for name in objectives):  # nothing is measured that could be worse
            return None
        for rival in self._best:
            if all(self._is_beaten(rival, name, values[name], ends.get(name)) for name in objectives):
                own = " and ".join(_figure(name, values[name]) for name in objectives)
                its = " and ".join(_figure(name, rival.objectives[name]) for name in objectives)
                return f"worse than trial {rival.number} beyond noise: {own}, against {its}"
        return None

    def _has_known_noise(self, name: str, ends: Mapping[str, tuple[float, float]]) -> bool:
        """Tell whether it is known how much better an objective may be: a count, a timed rate, a peak."""
        assert self._rivals is not None
        is_peak = name.endswith(_BYTES) and self._rivals.objectives[name] is Direction.MINIMIZE
        return name in self._exact or name in ends or is_peak

    def _is_beaten(self, rival: Rival, name: str, value: float, ends: tuple[float, float] | None) -> bool:
        """Tell whether the best that a value may be is worse than the worst that the rival's may be."""
        assert self._rivals is not None
        is_more_better = self._rivals.objectives[name] is Direction.MAXIMIZE
        worst = rival.worst[name]
        if name in self._exact:  # known to the unit, for both: to be no better is enough
            return value <= rival.objectives[name] if is_more_better else value >= rival.objectives[name]
        low, high = ends or (value * (1 - MEMORY_SPREAD), value * (1 + MEMORY_SPREAD))
        return high < worst if is_more_better else low > worst


def _figure(name: str, value: float) -> str:
    text = measure_text(name, value)
    return text if name.endswith(_RATE) else f"{_words(name)} {text}"


def _words(name: str) -> str:
    return name.removesuffix(_BYTES).replace("_", " ")
