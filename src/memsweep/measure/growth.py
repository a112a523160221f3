"""Was memory still growing when the measurement ended?

A peak that was taken while memory leaked is the peak of so many passes, and of no longer training.  So what
is held is read at the edges of the timed passes, and its increments are looked at.

The lower median of the increments is taken, and not their mean: a heap that finds its size in one pass, or a
cache that is filled once, is a step and no leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memsweep.units import MIB, bytes_text

LEAST_BYTES = MIB
"""Growth of a pass that is never told of: a heap has so much more or less at any moment."""

LEAST_SHARE = 0.002
"""The same as a share of the peak, for large models: five hundred passes would double it."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How what is held changed from pass to pass.

    Attributes:
        bytes_per_pass: The lower median of the increments; negative when memory was given back.
        threshold_bytes: The increment above which memory counts as growing.
        n_passes: The passes that were looked at.
    """

    bytes_per_pass: int
    threshold_bytes: int
    n_passes: int

    @property
    def is_growing(self) -> bool:
        """Whether the peak would have been higher after more passes."""
        return self.bytes_per_pass > self.threshold_bytes

    @property
    def remark(self) -> str | None:
        """The sentence for a reader, None when memory was not growing."""
        if not self.is_growing:
            return None
        return (
            f"memory grows by {bytes_text(self.bytes_per_pass)} a pass, seen over {self.n_passes} passes: "
            "the peak is not the end of it"
        )


def growth(edges: Sequence[int], peak_bytes: int) -> Growth | None:
    """Return how memory grew over the timed passes, None when there were fewer than two.

    Args:
        edges: (n_passes + 1,) bytes held at the edges of the passes, in their order.
        peak_bytes: The peak that is reported; what counts as growing is measured against it.
    """
    increments = sorted(after - before for before, after in pairwise(edges))
    if len(increments) < 2:
        return None
    threshold_bytes = max(LEAST_BYTES, round(LEAST_SHARE * peak_bytes))
    return Growth(increments[(len(increments) - 1) // 2], threshold_bytes, len(increments))
