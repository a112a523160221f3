"""How much memory did a trial need at its peak, and in which phase of its life?

On a CPU: the growth of the peak of anonymous resident memory over the point just before the model was built.
Anonymous only, because a process that was forked from a warm template faults in tens of MiB of library pages
that are not the trial's.  On CUDA see `memsweep.measure.device`.
"""

from __future__ import annotations

import gc
import resource
from enum import StrEnum
from typing import Any, Self

from memsweep.measure.allocator import Allocator, in_use_bytes, loosen, tighten
from memsweep.measure.device import DeviceMemory
from memsweep.measure.resident import reset_peak, resident
from memsweep.units import GIB, bytes_text

# Address space that a trial may reserve beyond its budget and hardly touch.  TRL's fused head alone reserves
# min(tokens, 4096) x 32768 floats, 512 MiB, of which it touches the vocabulary's share.
# Source: trl==1.16.0 trl/kernels/chunked_logprob.py.
UNTOUCHED_BYTES = GIB


class Part(StrEnum):
    """The parts of a trial's life that have a peak of their own.

    Attributes:
        LOAD: Model and trainer are built.
        FIRST_STEP: The optimizer's state appears.
        EVALUATION: Once, where it was asked for.
        WORST_STEP: The longest examples together.
        STEADY: The batches that are timed.
    """

    LOAD = "load"
    FIRST_STEP = "first_step"
    EVALUATION = "evaluation"
    WORST_STEP = "worst_step"
    STEADY = "steady"


class BudgetExceeded(Exception):
    """A trial on a CPU needed more than its budget grants.

    Attributes:
        needed_bytes: Its peak until now.
        budget_bytes: What it was granted.
    """

    def __init__(self, needed_bytes: int, budget_bytes: int) -> None:
        self.needed_bytes, self.budget_bytes = needed_bytes, budget_bytes
        super().__init__(f"{bytes_text(needed_bytes)} were needed, the budget is {bytes_text(budget_bytes)}")


class HostMemory:
    """The memory of a trial that computes on the CPU.

    From its making until `settle`, freed memory is given back at once, and the peak counts; after, freed
    memory is kept, so that steps are as fast as in any other program.

    A budget is held against the figure that is reported, at each `check`.  Besides, while the peak counts,
    requests far beyond it fail at once, so that a trial cannot take the whole machine.

    Args:
        budget_bytes: What the trial may take; None means all there is.
    """

    def __init__(self, budget_bytes: int | None = None) -> None:
        gc.collect()  # what making data left in cycles would be freed in the middle, and used again
        self.allocator = tighten()
        self.starts_anew = reset_peak()
        self.start = resident()
        self._part = Part.LOAD
        self._peaks: dict[Part, int] = {}
        self._is_settled = False
        self._budget = budget_bytes
        self._limits = resource.getrlimit(resource.RLIMIT_DATA)
        if budget_bytes is not None:
            highest = self._limits[1]
            wanted = self.start.data_bytes + budget_bytes + UNTOUCHED_BYTES
            soft = wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, highest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lift()

    def enter(self, part: Part) -> None:
        """End the part that was, and begin another."""
        self._look()
        self._part = part
        reset_peak()

    def check(self) -> None:
        """Hold the peak until now against the budget.

        Raises:
            BudgetExceeded: If it is above.
        """
        self._look()
        if self._budget is not None and self.peak_bytes > self._budget:
            raise BudgetExceeded(self.peak_bytes, self._budget)

    def settle(self) -> None:
        """Take the last peak, and stop giving memory back."""
        self._look()
        self._is_settled = True
        self._lift()
        if self.allocator is Allocator.TIGHT:
            loosen()

    def wait(self) -> None:
        """Do nothing: a CPU has finished what it was given when the call returns."""

    @property
    def peak_bytes(self) -> int:
        """The highest of all parts."""
        return max(self._peaks.values(), default=0)

    def measures(self) -> dict[str, float]:
        """Return the peak and that of each part, in bytes."""
        self._look()
        parts = {f"{part}_peak_bytes": float(peak) for part, peak in self._peaks.items()}
        return {"peak_memory_bytes": float(self.peak_bytes), **parts}

    def held_bytes(self) -> int:
        """Return what is held now over the start."""
        return max(0, resident().anonymous_bytes - self.start.anonymous_bytes)

    def in_use_bytes(self) -> int:
        """Return what is in use now, whatever a loose allocator keeps beside it."""
        known = in_use_bytes()
        return self.held_bytes() if known is None else known

    def facts(self) -> dict[str, Any]:
        """Return how the figure was taken."""
        return {
            "kind": "growth of peak anonymous resident memory",
            "allocator": str(self.allocator),
            "peak_reset": self.starts_anew,
            "start_anonymous_bytes": self.start.anonymous_bytes,
        }

    def _look(self) -> None:
        """Take note of the peak, while it counts: a loose allocator's is what it keeps, not what it needs."""
        if not self._is_settled:
            grown = max(0, resident().peak_anonymous_bytes - self.start.anonymous_bytes)
            self._peaks[self._part] = max(grown, self._peaks.get(self._part, 0))

    def _lift(self) -> None:
        if self._budget is not None:
            resource.setrlimit(resource.RLIMIT_DATA, self._limits)


Memory = HostMemory | DeviceMemory
