"""What memory and speed are compared in: objectives where there are such, else measures that trials have."""

from __future__ import annotations

from dataclasses import dataclass

from memsweep.findings.find import Findings
from memsweep.findings.intervals import Interval, interval
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult

MEMORY, SPEED = "peak_memory_bytes", "tokens_per_second"
"""The measures that are compared where a study has no such objective, and its trials measured them anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The measure that memory, or speed, is compared in.

    Attributes:
        name: Of the objective, or of a measure that the trials have beside the objectives.
        direction: What is better.
        is_objective: Whether the study has it as an objective.
    """

    name: str
    direction: Direction
    is_objective: bool

    def value(self, result: TrialResult) -> float:
        """Return what a measured trial measured, the median over its runs.

        Raises:
            KeyError: If it did not measure this.
        """
        own = result.objectives.get(self.name)
        return result.medians[self.name] if own is None else own

    def interval(self, findings: Findings, result: TrialResult) -> Interval | None:
        """Return the 95 % interval of a trial's value; None where nothing is known of its spread."""
        return findings.interval(result, self.name) if self.is_objective else interval(result, self.name)

    def bounds(self, findings: Findings, result: TrialResult) -> Interval:
        """Return the interval of a trial's value; the value alone where nothing is known of its spread."""
        value = self.value(result)
        return self.interval(findings, result) or (value, value)

    def loss(self, result: TrialResult) -> float:
        """Return a trial's value so that less is better."""
        return -self.value(result) if self.direction is Direction.MAXIMIZE else self.value(result)


def memory_axis(findings: Findings) -> Axis | None:
    """Return what memory is compared in: the first objective of bytes that is to be small, else the peak.

    None where the study has no such objective and its trials did not measure their peak.
    """
    return _axis(findings, Direction.MINIMIZE, "_bytes") or _measured(findings, MEMORY, Direction.MINIMIZE)


def speed_axis(findings: Findings) -> Axis | None:
    """Return what speed is compared in: the first objective that is a rate, else one of time, else tokens.

    None where the study has no such objective and its trials did not count tokens.
    """
    return (
        _axis(findings, Direction.MAXIMIZE, "_per_second")
        or _axis(findings, Direction.MINIMIZE, "_seconds")
        or _measured(findings, SPEED, Direction.MAXIMIZE)
    )


def _axis(findings: Findings, direction: Direction, ending: str) -> Axis | None:
    for name, own in findings.study.objectives.items():
        if own is direction and name.endswith(ending):
            return Axis(name=name, direction=direction, is_objective=True)
    return None


def _measured(findings: Findings, name: str, direction: Direction) -> Axis | None:
    if findings.measured and all(name in result.measures for result in findings.measured):
        return Axis(name=name, direction=direction, is_objective=False)
    return None
