"""How full are packed rows?  TRL's three strategies on lengths alone.

TRL packs what `Dataset.map` hands it, a thousand examples at a time, so no row is packed across such a part;
of very many examples some parts are packed, at even distances, and stand for the rest.
Source: trl==1.16.0 data_utils.py `_pack_bfd`, `_pack_wrapped`; arXiv:2404.10830.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memsweep.lengths.preparation import Ints

STRATEGIES = ("bfd", "bfd_split", "wrapped")
TOGETHER = 1_000
"""Examples that TRL packs together.  Source: datasets==5.0.0 Dataset.map, `batch_size`."""
MOST_PARTS = 200
"""Parts that are packed at most: 200,000 examples take seconds, and their rows are as full as the others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What packing makes of examples.

    Attributes:
        max_length: Tokens that a row has room for.
        strategy: `bfd`, `bfd_split` or `wrapped`.
        n_examples: Examples that were packed.
        n_rows: Rows that they fill.
        tokens: Tokens in those rows.
        kept_share: Those of the examples' tokens.
    """

    max_length: int
    strategy: str
    n_examples: int
    n_rows: int
    tokens: int
    kept_share: float

    @property
    def filled_share(self) -> float:
        """Tokens as a share of the room that the rows have."""
        return self.tokens / (self.n_rows * self.max_length) if self.n_rows else 0.0


def packed(lengths: Ints, max_length: int, strategy: str) -> Packed:
    """Return what packing makes of examples.

    Args:
        lengths: (n_examples,) tokens of each, in the order of the data.
        max_length: Tokens of a row.
        strategy: One of `STRATEGIES`.
    """
    n_rows, tokens, source, n_examples = 0, 0, 0, 0
    for part in _parts(lengths):
        n_examples += len(part)
        source += int(part.sum())
        if strategy == "wrapped":
            tokens += int(part.sum())
            n_rows += -(-int(part.sum()) // max_length)
        elif strategy == "bfd":
            cut = np.minimum(part, max_length)
            tokens += int(cut.sum())
            n_rows += _best_fit(cut, max_length)
        else:
            whole, rest = np.divmod(part, max_length)
            tokens += int(part.sum())
            n_rows += int(whole.sum()) + _best_fit(rest, max_length)
    return Packed(
        max_length=max_length,
        strategy=strategy,
        n_examples=n_examples,
        n_rows=n_rows,
        tokens=tokens,
        kept_share=tokens / source if source else 1.0,
    )


def _parts(lengths: Ints) -> Iterator[Ints]:
    starts: Sequence[int] = range(0, len(lengths), TOGETHER)
    if len(starts) > MOST_PARTS:
        starts = [starts[int(place)] for place in np.linspace(0, len(starts) - 1, MOST_PARTS)]
    for start in starts:
        yield lengths[start : start + TOGETHER]


def _best_fit(lengths: Ints, max_length: int) -> int:
    """Return how many rows best fit decreasing needs: the longest first, each where it leaves least room.

    Rows with equal room are alike, so that only their number is kept; which rooms there are is a bit each.
    """
    rooms, n_rows = 0, 0
    n_with = [0] * (max_length + 1)
    for length in np.sort(lengths[lengths > 0])[::-1].tolist():
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            n_with[room] -= 1
            if not n_with[room]:
                rooms ^= 1 << room
        else:
            n_rows += 1
            room = max_length
        left = room - length
        if left:
            if not n_with[left]:
                rooms |= 1 << left
            n_with[left] += 1
    return n_rows
