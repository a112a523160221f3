"""In which unit is an objective drawn or listed, where numbers stand alone and the name carries the unit?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memsweep.findings.words import name_text
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.units import GIB, KIB, MIB

DIGITS = 5
"""Significant digits of what is shown; the exact figure stands beside it, as an attribute of the trial."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How one objective is shown.

    Attributes:
        name: The objective.
        divisor: What its values are divided by to be read in `unit`.
        unit: Unit in words; empty when there is none.
    """

    name: str
    divisor: float
    unit: str

    @property
    def title(self) -> str:
        """The objective's name, with its unit."""
        return f"{name_text(self.name)} ({self.unit})" if self.unit else name_text(self.name)

    def shown(self, value: float) -> float:
        """Return `value` in the unit, to as many digits as a person reads."""
        return float(f"{value / self.divisor:.{DIGITS}g}")


def scales(study: Study, results: Iterable[TrialResult]) -> tuple[Scale, ...]:
    """Return how the objectives are shown, in their order.

    Args:
        study: Whose objectives.
        results: Its trials: bytes are shown in the unit of the largest value.
    """
    measured = [result.objectives for result in results if result.objectives]
    return tuple(scale(name, [objectives[name] for objectives in measured]) for name in study.objectives)


def scale(name: str, values: Iterable[float]) -> Scale:
    """Return how an objective with such values is shown."""
    if name.endswith("_bytes"):
        largest = max(map(abs, values), default=0.0)
        units = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
        return Scale(name, *next(((size, unit) for size, unit in units if largest >= size), (1, "bytes")))
    if name.endswith("_per_second"):
        return Scale(name, 1, name.removesuffix("_per_second").replace("_", " ") + "/s")
    return Scale(name, 1, "s" if name.endswith("_seconds") else "")
