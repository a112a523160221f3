"""From the lengths of examples to the table: percentiles, limits, padding, packing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memsweep.config.schema import TrialConfig
from memsweep.lengths.packing import STRATEGIES, packed
from memsweep.lengths.padding import padded
from memsweep.lengths.preparation import Counted, Ints, Preparation, kept, room, stays
from memsweep.lengths.scan import OnRows, Scanned, scan
from memsweep.lengths.table import Bin, Lengths, Limit, Part
from memsweep.lengths.whose import Asked, asked
from memsweep.technique.catalogue import Catalogue

PERCENTS = (50, 90, 95, 99)
CANDIDATE_PERCENTS = (90, 95, 99)
"""A limit at one of these leaves so many percent of the examples whole."""

SHORTEST_LIMIT = 32
"""No trainer is given less; conf/technique/truncation refuses less than 16."""

MOST_BINS = 24
BATCHES = (2, 4, 8, 16)
"""Batch sizes whose padding is shown when none are asked for."""


def lengths_of(
    config: TrialConfig,
    techniques: Catalogue,
    batches: Sequence[int] = BATCHES,
    on_rows: OnRows | None = None,
) -> Lengths:
    """Return what is known of the lengths of a trial's data, all of them.

    Args:
        config: The trial.
        techniques: The techniques there are.
        batches: Sizes of batches whose padding is wanted.
        on_rows: Called with the number of rows that were just counted.

    Raises:
        ConfigError: If the trial cannot be meant, or its data are not what its trainer needs.
    """
    who = asked(config, techniques)
    return table(who, scan(who, on_rows), batches)


def table(who: Asked, found: Scanned, batches: Sequence[int] = BATCHES) -> Lengths:
    """Return the table of some examples.

    Args:
        who: Whose.
        found: Their tokens.
        batches: Sizes of batches whose padding is wanted.
    """
    counted, how, config = found.counted, who.how, who.config
    left = kept(counted, how, how.max_length)
    limits = tuple(_limits(counted, how))
    packing = [
        packed(counted.tokens[:, 0], limit.max_length, strategy)
        for limit in limits
        for strategy in STRATEGIES
        if how.can_pack
    ]
    return Lengths(
        data=config.dataset.name,
        trainer=config.trainer.name,
        model=config.model.name,
        n_examples=len(counted),
        n_unusable=found.n_unusable,
        tokens=int(counted.tokens.sum()),
        max_length=how.max_length,
        tokens_kept=int(left.sum()),
        parts=tuple(_part(name, column) for name, column in zip(found.names, counted.tokens.T, strict=True)),
        distribution=tuple(_bins(counted.tokens.ravel())),
        limits=limits,
        padding=tuple(padded(left, batch, config.seed) for batch in batches) if len(left) else (),
        packing=tuple(packing),
        remarks=how.remarks,
    )


def percentile(lengths: Ints, percent: float) -> int:
    """Return the least length that `percent` of the sequences do not exceed."""
    return int(np.percentile(lengths, percent, method="inverted_cdf"))


def _part(name: str, lengths: Ints) -> Part:
    return Part(
        name=name,
        n_sequences=len(lengths),
        tokens=int(lengths.sum()),
        shortest=int(lengths.min()),
        longest=int(lengths.max()),
        percentiles={str(percent): percentile(lengths, percent) for percent in PERCENTS},
    )


def _limits(counted: Counted, how: Preparation) -> Iterator[Limit]:
    longest = counted.tokens.max(axis=1) + how.answer_tokens
    candidates: dict[int, list[str]] = {}
    if how.max_length is not None:
        candidates.setdefault(how.max_length, []).append("in force")
    for power in _powers(int(np.median(longest)), int(longest.max())):
        candidates.setdefault(power, [])
    for percent in CANDIDATE_PERCENTS:
        candidates.setdefault(percentile(longest, percent), []).append(f"{percent} % whole")
    candidates.setdefault(int(longest.max()), []).append("the longest")
    total = int(counted.tokens.sum())
    for max_length, why in sorted(candidates.items()):
        is_left = stays(counted, how, max_length)
        fits = (counted.tokens <= room(how, max_length)).all(axis=1) | (not how.cuts)
        tokens = int(kept(counted, how, max_length).sum())
        n_left, n_whole = int(is_left.sum()), int((is_left & fits).sum())
        yield Limit(
            max_length=max_length,
            why=tuple(why),
            n_whole=n_whole,
            n_cut=n_left - n_whole,
            n_left_out=len(counted) - n_left,
            tokens_kept=tokens,
            kept_share=tokens / total if total else 1.0,
        )


def _powers(typical: int, longest: int) -> Iterator[int]:
    """Yield powers of two from about half the typical length to the first that holds the longest."""
    power = max(SHORTEST_LIMIT, 1 << max(typical // 2, 1).bit_length())
    while power < 2 * longest:
        yield power
        power *= 2


def _bins(lengths: Ints) -> Iterator[Bin]:
    """Yield bars of one width up to the 99th percentile, and one with whatever is longer."""
    end = percentile(lengths, 99)
    width = 1 << (end // (MOST_BINS - 1)).bit_length()  # a power of two, as limits are
    n_bins = end // width + 1
    counts = np.bincount(np.minimum(lengths // width, n_bins), minlength=n_bins + 1)
    first = int(np.flatnonzero(counts)[0])
    for index in range(first, n_bins):
        yield Bin(low=index * width, high=(index + 1) * width - 1, n_sequences=int(counts[index]))
    if counts[n_bins]:
        yield Bin(low=n_bins * width, high=int(lengths.max()), n_sequences=int(counts[n_bins]))
