"""What token counts must be, from lengths alone: no tensor, no mask, and nothing of memsweep's counting.

A sequence is described by how many tokens it has and how many of them are learned.  A sequence's first token
is predicted by nothing, so it is never learned.  A row of the data is one sequence or several: an answer; two
sides of a preference; what packing put together.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Length:
    """A sequence.

    Attributes:
        tokens: Its tokens.
        learned: Those of them that the loss is about.
    """

    tokens: int
    learned: int


Rows = Sequence[Sequence[Length]]
"""Rows of the data, each of one or several sequences."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a pass over the data must count.

    Attributes:
        tokens: Of the steps of a pass; those of rows that fill up its last step too, where there are any.
        slots: Tokens and padding; None where it does not follow from the data.
        kept: Tokens of the rows, each once.
        learned: Those of them that the loss is about; None where it is not about tokens.
    """

    tokens: int
    slots: int | None
    kept: int | None = None
    learned: int | None = None


def part(tokens: int, prompt: int, first: int, last: int) -> Length:
    """Return what is left of a sequence between two places.

    Args:
        tokens: Of the whole sequence.
        prompt: How many at its begin are not learned.
        first: The first place that is left.
        last: The place after the last.
    """
    last = min(last, tokens)
    return Length(last - first, max(0, last - max(first + 1, prompt)))


def rounded_up(number: int, multiple: int) -> int:
    """Return the least multiple that is not below `number`."""
    return math.ceil(number / multiple) * multiple


def filled(rows: Rows, batch: int) -> Rows:
    """Return the rows, and the first of them again until they fill whole batches."""
    return [rows[place % len(rows)] for place in range(rounded_up(len(rows), batch))]


def batches(rows: Rows, micro: int, multiple: int = 1, *, is_flat: bool = False) -> Expected:
    """Return what batches of these rows, in their order, hold.

    Args:
        rows: The rows.
        micro: Rows of a forward pass; the last may have fewer.
        multiple: What widths are padded to.
        is_flat: All sequences of a forward pass lie end to end in one row.
    """
    slots = 0
    for first in range(0, len(rows), micro):
        lengths = [length.tokens for row in rows[first : first + micro] for length in row]
        if is_flat:
            slots += rounded_up(sum(lengths), multiple)
        else:
            slots += rounded_up(max(lengths), multiple) * len(lengths)
    return Expected(sum(length.tokens for row in rows for length in row), slots)


def a_pass(
    rows: Rows,
    batch: int,
    micro: int | None = None,
    multiple: int = 1,
    *,
    is_flat: bool = False,
    learns: bool = True,
) -> Expected:
    """Return what a timed pass counts: whole batches, the last one filled up.

    Args:
        rows: The rows of the data.
        batch: Rows of an optimizer step.
        micro: Rows of a forward pass; None means the batch.
        multiple: What widths are padded to.
        is_flat: All sequences of a forward pass lie end to end in one row.
        learns: Whether the loss is about tokens.
    """
    counted = batches(filled(rows, batch), micro or batch, multiple, is_flat=is_flat)
    lengths = [length for row in rows for length in row]
    learned = sum(length.learned for length in lengths) if learns else None
    return Expected(counted.tokens, counted.slots, sum(length.tokens for length in lengths), learned)


def best_fit(lengths: Sequence[Length], limit: int) -> Rows:
    """Return sequences packed into rows: the longest first, each into the fullest row that has room.

    Source: the strategy, not the code: best-fit decreasing, arXiv:2404.10830.
    """
    rows: list[list[Length]] = []
    rooms: list[tuple[int, int]] = []  # (room, row), sorted
    for length in sorted(lengths, key=lambda length: -length.tokens):
        place = bisect.bisect_left(rooms, (length.tokens, -1))
        if place == len(rooms):
            rows.append([])
            room, row = limit, len(rows) - 1
        else:
            room, row = rooms.pop(place)
        rows[row].append(length)
        bisect.insort(rooms, (room - length.tokens, row))
    return rows


def fragments(tokens: int, prompt: int, limit: int) -> Sequence[Length]:
    """Return the parts of at most `limit` tokens that a sequence is split into."""
    return [part(tokens, prompt, first, first + limit) for first in range(0, tokens, limit)]


def wrapped(sequences: Sequence[tuple[int, int]], limit: int) -> Rows:
    """Return the rows that a stream of sequences, end to end, is cut into.

    Args:
        sequences: Tokens of each, and how many at its begin are not learned.
        limit: Tokens of a row.
    """
    stream = [place >= prompt for tokens, prompt in sequences for place in range(tokens)]
    return [
        [Length(len(stream[first : first + limit]), sum(stream[first + 1 : first + limit]))]
        for first in range(0, len(stream), limit)
    ]


def groups(
    prompts: Sequence[int], generations: int, together: int, completion: int, multiple: int = 1
) -> Expected:
    """Return what training once on generated completions counts, each of the whole budget.

    Args:
        prompts: Tokens of each prompt.
        generations: Completions of each.
        together: Prompts that are padded together.
        completion: Tokens of a completion.
        multiple: What prompts and completions are each padded to.
    """
    slots = 0
    for first in range(0, len(prompts), together):
        some = prompts[first : first + together]
        width = rounded_up(max(some), multiple) + rounded_up(completion, multiple)
        slots += width * generations * len(some)
    return Expected(sum(generations * (prompt + completion) for prompt in prompts), slots)
