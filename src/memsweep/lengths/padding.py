"""How much of a batch is padding?  Batches in random order, and grouped by length, from lengths alone.

A batch is as wide as its longest sequence; both sides of a preference lie in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsweep.lengths.preparation import Ints

MEGABATCH = 50
"""Batches that are sorted together.  Source: transformers==5.24.0 trainer_pt_utils.py, group by length."""
SETTLED = 100_000
"""Examples in all after which another shuffle tells nothing new."""
MOST_SHUFFLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """The padding of batches of one size.

    Attributes:
        batch: Examples of a batch.
        random_share: Padding as a share of all positions, examples in random order.
        grouped_share: The same with examples grouped by length: `train_sampling_strategy=group_by_length`.
    """

    batch: int
    random_share: float
    grouped_share: float


def padded(tokens: Ints, batch: int, seed: int) -> Padded:
    """Return how much padding batches have.

    Args:
        tokens: (n_examples, n_sequences) as trained on; at least one example.
        batch: Examples of a batch; the last may have fewer.
        seed: Decides the orders.
    """
    chance = np.random.default_rng(seed)
    longest = tokens.max(axis=1)
    n_shuffles = min(max(SETTLED // len(tokens), 1), MOST_SHUFFLES)
    orders = [chance.permutation(len(tokens)) for _ in range(n_shuffles)]
    slots = [batch_slots(longest[order], batch) for order in orders]
    grouped = [batch_slots(longest[grouped_order(longest, batch, order)], batch) for order in orders]
    real = float(tokens.sum())
    n_sequences = tokens.shape[1]
    return Padded(
        batch=batch,
        random_share=1 - real / (float(np.mean(slots)) * n_sequences),
        grouped_share=1 - real / (float(np.mean(grouped)) * n_sequences),
    )


def batch_slots(lengths: Ints, batch: int) -> int:
    """Return the positions of one sequence an example, in batches as wide as their longest."""
    starts = np.arange(0, len(lengths), batch)
    sizes = np.minimum(batch, len(lengths) - starts)
    return int((np.maximum.reduceat(lengths, starts) * sizes).sum())


def grouped_order(lengths: Ints, batch: int, order: Ints) -> Ints:
    """Return examples in an order that has those of like length together, as transformers makes it.

    Args:
        lengths: (n_examples,) of each.
        batch: Examples of a batch.
        order: (n_examples,) a random order, which the result keeps from one sorted stretch to the next.
    """
    size = batch * max(min(len(lengths) // (batch * 4), MEGABATCH), 1)
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    parts = [part[np.argsort(-lengths[part], kind="stable")] for part in parts]
    longest = int(np.argmax([lengths[part[0]] for part in parts]))
    parts[0][0], parts[longest][0] = parts[longest][0], parts[0][0]
    return np.concatenate(parts)
