"""One trial of a study, by what a person wants: the fastest that fits, the smallest that is fast, the knee.

Only feasible trials are on offer, and of those at first only set-ups that train exactly what the baseline
trains: the others win by training something else.  What is compared is what was measured; a wish is met by
the figure itself, and where its interval says otherwise the words say so (`memsweep.findings.advice`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

import numpy as np

from memsweep.findings.axes import Axis, memory_axis, speed_axis
from memsweep.findings.find import Findings
from memsweep.pareto.front import on_front
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult


class Prefer(StrEnum):
    """What decides among the set-ups that meet the demands.

    Attributes:
        MEMORY: The least memory.
        SPEED: The highest speed.
        KNEE: The most of all objectives together, each between its best and its worst on the front.
    """

    MEMORY = "memory"
    SPEED = "speed"
    KNEE = "knee"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants of a set-up.

    Attributes:
        memory_bytes: The most memory that it may take; None is no limit.
        min_speed: The least speed, as a share of the best among what fits; None is no limit.
        prefer: What decides; None means speed under a memory limit, memory above a least speed, else knee.
        changes: What it may change beside speed and memory; None means anything.
        surely: Memory is within its limit only where the upper end of its interval is.
    """

    memory_bytes: int | None = None
    min_speed: float | None = None
    prefer: Prefer | None = None
    changes: frozenset[str] | None = frozenset()
    surely: bool = False

    def __post_init__(self) -> None:
        if self.min_speed is not None and not 0 < self.min_speed <= 1:
            raise ValueError(
                f"the least speed must be a share of the best, above 0 and at most 1, got {self.min_speed:g}"
            )

    @property
    def preference(self) -> Prefer:
        """What decides."""
        if self.prefer is not None:
            return self.prefer
        if self.min_speed is not None:
            return Prefer.MEMORY
        return Prefer.KNEE if self.memory_bytes is None else Prefer.SPEED

    def accepts(self, result: TrialResult) -> bool:
        """Tell whether a trial changes nothing but what may change."""
        return self.changes is None or set(result.changes) <= self.changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The trial that a wish is best met by.

    Attributes:
        wish: The wish.
        result: The trial.
        axis: What decided; None for the knee.
        runner_up: The next best by the same rule; None when no other meets the demands.
        tied: Numbers of those that meet the demands and cannot be told from it in what decided.
        fastest: The trial that the least speed is a share of; None without that demand.
        n_offered: Set-ups that were compared: feasible, and changing no more than was accepted.
        n_fitting: Those of them that fit the memory.
        n_left: Those of them that are fast enough, too.
        memory: What memory is compared in; None when the study knows none.
        speed: What speed is compared in; None when the study knows none.
    """

    wish: Wish
    result: TrialResult
    axis: Axis | None
    runner_up: TrialResult | None
    tied: tuple[int, ...]
    fastest: TrialResult | None
    n_offered: int
    n_fitting: int
    n_left: int
    memory: Axis | None
    speed: Axis | None


def recommend(findings: Findings, wish: Wish) -> Recommendation | None:
    """Return the trial that meets `wish` best; None when none meets it.

    Args:
        findings: What the study found.
        wish: What is wanted.

    Raises:
        ValueError: If the wish is about memory, or speed, and the study knows none.
    """
    memory, speed = memory_axis(findings), speed_axis(findings)
    require_axes(findings, wish)
    left = offered = offers(findings, wish)
    if wish.memory_bytes is not None:
        assert memory is not None
        most = {result.number: memory.bounds(findings, result)[1] for result in left} if wish.surely else {}
        left = [one for one in left if most.get(one.number, memory.value(one)) <= wish.memory_bytes]
    n_fitting, fastest = len(left), None
    if wish.min_speed is not None and left:
        assert speed is not None
        fastest = min(left, key=lambda result: (speed.loss(result), result.number))
        left = [result for result in left if _share(speed, result, fastest) >= wish.min_speed]
    if not left:
        return None
    axis = {Prefer.MEMORY: memory, Prefer.SPEED: speed, Prefer.KNEE: None}[wish.preference]
    ranked = _by_knee(findings, left) if axis is None else _by_axis(left, axis, memory, speed)
    best = ranked[0]
    return Recommendation(
        wish=wish,
        result=best,
        axis=axis,
        runner_up=ranked[1] if len(ranked) > 1 else None,
        tied=() if axis is None else _tied(findings, axis, best, left),
        fastest=fastest,
        n_offered=len(offered),
        n_fitting=n_fitting,
        n_left=len(left),
        memory=memory,
        speed=speed,
    )


def offers(findings: Findings, wish: Wish) -> list[TrialResult]:
    """Return the feasible trials that change no more than is accepted, whatever else is wanted."""
    own = (result for result in findings.results if result.feasible and result.reused_from is None)
    return [result for result in own if wish.accepts(result)]


def require_axes(findings: Findings, wish: Wish) -> None:
    """Raise if a wish is about what the study knows nothing of.

    Raises:
        ValueError: It says what the study's objectives are, and what can be asked instead.
    """
    there = ", ".join(f"{name} ({direction})" for name, direction in findings.study.objectives.items())
    for axis, what, is_wanted in (
        (memory_axis(findings), "memory", wish.memory_bytes is not None or wish.prefer is Prefer.MEMORY),
        (speed_axis(findings), "speed", wish.min_speed is not None or wish.prefer is Prefer.SPEED),
    ):
        if axis is None and (is_wanted or wish.preference == what):
            raise ValueError(
                f"study {findings.study.name} has no objective of {what}, and its trials did not measure "
                f"any; its objectives: {there}. Ask for the best compromise of those: --prefer knee"
            )


def _share(speed: Axis, result: TrialResult, fastest: TrialResult) -> float:
    """Return a trial's speed as a share of the fastest's: of rates, or of times, where less is faster."""
    one, best = speed.value(result), speed.value(fastest)
    if speed.direction is Direction.MINIMIZE:
        one, best = best, one
    return one / best if best > 0 else 1.0


def _by_axis(
    results: Iterable[TrialResult], axis: Axis, memory: Axis | None, speed: Axis | None
) -> list[TrialResult]:
    """Return trials, best first; of equals that first which is better in the other of memory and speed."""
    other = speed if axis == memory else memory

    def rank(result: TrialResult) -> tuple[float, float, int]:
        return axis.loss(result), 0.0 if other is None else other.loss(result), result.number

    return sorted(results, key=rank)


def _by_knee(findings: Findings, results: Sequence[TrialResult]) -> list[TrialResult]:
    """Return the front of `results`, the knee first.

    Each objective is put between 0, the best on that front, and 1, the worst; on a logarithmic scale where
    all its values are above zero, since ratios are what is compared.  The knee has the smallest sum.  For two
    objectives that is the point furthest from the straight line between the two ends of the front.
    Source: Das 1999, "On characterizing the knee of the Pareto curve based on normal-boundary intersection",
    Structural Optimization 18: there the distance to the line, or plane, through the best in each objective.
    """
    losses = np.array(findings.study.losses(results))
    members = [result for result, is_on in zip(results, on_front(losses), strict=True) if is_on]
    sums = dict.fromkeys((result.number for result in members), 0.0)
    for name, direction in findings.study.objectives.items():
        values = [result.objectives[name] for result in members]
        scaled = [log(value) for value in values] if min(values) > 0 else values
        width = (max(scaled) - min(scaled)) or 1.0
        for result, value in zip(members, scaled, strict=True):
            away = max(scaled) - value if direction is Direction.MAXIMIZE else value - min(scaled)
            sums[result.number] += away / width
    order = {result.number: place for place, result in enumerate(results)}
    first = next(iter(findings.study.objectives))
    sign = -1 if findings.study.objectives[first] is Direction.MAXIMIZE else 1
    return sorted(
        members,
        key=lambda result: (
            round(sums[result.number], 9),
            sign * result.objectives[first],
            order[result.number],
        ),
    )


def _tied(
    findings: Findings, axis: Axis, best: TrialResult, others: Iterable[TrialResult]
) -> tuple[int, ...]:
    low, high = axis.bounds(findings, best)
    found = []
    for other in others:
        other_low, other_high = axis.bounds(findings, other)
        if other.number != best.number and low <= other_high and other_low <= high:
            found.append(other.number)
    return tuple(found)
