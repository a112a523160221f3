"""One direction of a picture: an objective in the unit that suits it, or the trial's number."""

from __future__ import annotations

from dataclasses import dataclass

from memsweep.findings.find import Findings
from memsweep.findings.scale import scale
from memsweep.findings.words import name_text
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text

FAR = 1.6
"""A limit beyond this many times the largest value is named, not drawn: it would squeeze the rest."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of the picture.

    Attributes:
        name: The objective; None for the trial's number.
        better: `more` or `less`; empty for the trial's number.
        divisor: What values are divided by to be read in `unit`.
        unit: Unit in words; empty when there is none.
    """

    name: str | None
    better: str
    divisor: float
    unit: str

    @classmethod
    def of(cls, name: str | None, findings: Findings) -> Axis:
        """Return the axis for an objective, in the unit that suits its largest value."""
        if name is None:
            return cls(None, "", 1, "")
        better = "more" if findings.study.objectives[name] is Direction.MAXIMIZE else "less"
        shown = scale(name, (result.objectives[name] for result in findings.measured))
        return cls(name, better, shown.divisor, shown.unit)

    @property
    def title(self) -> str:
        """What stands beside the axis."""
        if self.name is None:
            return "trial"
        unit = f" ({self.unit})" if self.unit else ""
        return f"{name_text(self.name)}{unit}, {self.better} is better"

    def at(self, result: TrialResult) -> float:
        """Return where a measured trial lies."""
        return result.number if self.name is None else result.objectives[self.name] / self.divisor

    def arms(self, findings: Findings, result: TrialResult) -> tuple[float | None, float | None]:
        """Return how far a trial's interval reaches below and above; None where it has none."""
        bounds = None if self.name is None else findings.interval(result, self.name)
        if bounds is None:
            return None, None
        at = self.at(result)
        return max(0.0, at - bounds[0] / self.divisor), max(0.0, bounds[1] / self.divisor - at)

    def limits(self, findings: Findings) -> list[tuple[float, str]]:
        """Return the upper limits of the study on this axis: where each lies, and its text."""
        return [
            (demand.bound / self.divisor, f"limit {measure_text(demand.measure, demand.bound)}")
            for demand in findings.study.constraints.values()
            if demand.measure == self.name and demand.upper and demand.bound is not None
        ]

    def is_near(self, limit: float, findings: Findings) -> bool:
        """Tell whether a limit lies where the picture can show it."""
        return limit <= FAR * max((self.at(result) for result in findings.measured), default=0.0)


def axes(findings: Findings) -> tuple[Axis, Axis]:
    """Return what lies to the right and what upwards: the second objective and the first."""
    names = findings.objectives
    return Axis.of(names[1] if len(names) > 1 else None, findings), Axis.of(names[0], findings)
