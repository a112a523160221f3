"""How a study came to its front: what the front covered after each trial."""

from __future__ import annotations

from dataclasses import dataclass

from memsweep.findings.covered import covered
from memsweep.findings.find import Findings, front_of
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult

NEARLY_ALL = 0.95
"""Share of the last hypervolume at which a search has found most of what it will."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was known after one trial, by the figures and the demands as they stand at the end.

    Attributes:
        number: The trial's number.
        volume: Hypervolume of the front of the trials to this one; None before any is feasible.
        same_volume: The same of those alone that train what the baseline trains.
        is_new: Whether this trial added to it.
    """

    number: int
    volume: float | None
    same_volume: float | None
    is_new: bool


def course(findings: Findings) -> tuple[Point, ...]:
    """Return a point a trial, by number; none where the worst corner was never fixed."""
    study = findings.study
    if set(study.reference) != set(study.objectives):
        return ()
    everything, same = _Growing(study), _Growing(study)
    points = []
    for result in findings.results:
        is_new = everything.add(result)
        if not result.changes:
            same.add(result)
        points.append(
            Point(number=result.number, volume=everything.volume, same_volume=same.volume, is_new=is_new)
        )
    return tuple(points)


def nearly_all_after(points: tuple[Point, ...]) -> int | None:
    """Return the trial after which most of the last hypervolume was covered; None without any."""
    last = points[-1].volume if points else None
    if last is None or last <= 0:
        return None
    reached = (p.number for p in points if p.volume is not None and p.volume >= NEARLY_ALL * last)
    return next(reached, None)


class _Growing:
    """A front that trials are added to one by one."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._front: tuple[TrialResult, ...] = ()
        self.volume: float | None = None

    def add(self, result: TrialResult) -> bool:
        """Add a trial, and tell whether the front covers more with it."""
        if not result.feasible or result.reused_from is not None:
            return False
        self._front = front_of([*self._front, result], self._study)
        before, self.volume = self.volume, covered(self._study, self._front)
        return self.volume is not None and (before is None or self.volume > before)
