"""In which order do prepared rows enter training, and what happens after which step?

    first block       the optimizer's state appears; then, where asked for, one evaluation
    worst block       the longest examples together, if asked for: the peak of memory that a long training
                      meets some day
    rest of a pass    the peak of memory on a CPU is taken up to here
    settling block    not timed, the worst block again: on a CPU the allocator has changed its ways, and sizes
                      its heap; what tensors hold is followed
    timed passes      the same batches in the same order again and again, until the throughput is known

A block is the fewest rows that fill whole optimizer steps.  Where a pass does not fill its last block, its
first rows fill it up: a long training has no short batches but its last, and memory would look smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """The fewest rows that fill whole optimizer steps.

    Attributes:
        n_rows: Rows of the prepared data.
        n_steps: Optimizer steps that they take.
    """

    n_rows: int
    n_steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The steps of a trial.

    Attributes:
        block: What a step is made of.
        rows: The probe's rows in the order of training, as indices into the prepared data.
        longest: The longest rows, `block.n_rows` of them; none where there is no worst block.
        max_passes: Passes that are timed at most.
        evaluates: Whether the trainer evaluates, once, after the first block.
    """

    block: Block
    rows: Sequence[int]
    longest: Sequence[int]
    max_passes: int
    evaluates: bool = False

    @property
    def blocks_per_pass(self) -> int:
        """Blocks that a pass fills, the last one filled up."""
        return math.ceil(len(self.rows) / self.block.n_rows)

    @property
    def steps_per_pass(self) -> int:
        """Optimizer steps of a pass."""
        return self.blocks_per_pass * self.block.n_steps

    @property
    def rows_per_pass(self) -> int:
        """Rows of a pass, those too that fill up its last block."""
        return self.blocks_per_pass * self.block.n_rows

    @property
    def first_block_end(self) -> int:
        """The step that ends the first block."""
        return self.block.n_steps

    @property
    def worst_block_end(self) -> int:
        """The step that ends the worst block; the first block's where there is none."""
        return self.first_block_end + (self.block.n_steps if self.longest else 0)

    @property
    def memory_end(self) -> int:
        """The step after which memory on a CPU is known, and the allocator changes its ways."""
        return self.worst_block_end + self.steps_per_pass - self.block.n_steps

    @property
    def first_edge(self) -> int:
        """The step after which time counts."""
        return self.memory_end + self.block.n_steps

    @property
    def last_edge(self) -> int:
        """The last step that there can be."""
        return self.first_edge + self.max_passes * self.steps_per_pass

    def is_edge(self, step: int) -> bool:
        """Tell whether a timed pass begins or ends with `step`."""
        return step >= self.first_edge and (step - self.first_edge) % self.steps_per_pass == 0

    def order(self) -> list[int]:
        """Return the row of each position, as many as all steps take."""
        n = self.block.n_rows
        one_pass = [self.rows[place % len(self.rows)] for place in range(self.rows_per_pass)]
        first, rest = one_pass[:n], one_pass[n:]
        return [*first, *self.longest, *rest, *(self.longest or first), *one_pass * self.max_passes]
