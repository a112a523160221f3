"""Which trials are worth having: the Pareto front.

Everything here is a loss: smaller is better in every column.  Callers negate what is to be maximized and
drop infeasible trials before they arrive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Compared at once: (rows, rows, n_objectives) of bool, so 256 rows against 4,096 trials take 2 MiB.
_ROWS = 256


def on_front(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the trials that no other trial dominates.

    One trial dominates another when it is no worse in every objective and better in at least one.  Equal
    trials do not dominate each other: both stay.

    Args:
        losses: (n_trials, n_objectives); smaller is better; NaN is not allowed.

    Returns:
        (n_trials,) bool, True on the front.

    Raises:
        ValueError: If `losses` is not two-dimensional, or holds a NaN.
    """
    if losses.ndim != 2:
        raise ValueError(f"losses must be (n_trials, n_objectives), got shape {losses.shape}")
    rows_with_nan = np.flatnonzero(np.isnan(losses).any(axis=1))
    if rows_with_nan.size:
        raise ValueError(f"losses must not hold NaN; NaN in rows {rows_with_nan.tolist()}")
    if losses.shape[1] == 2:
        return _on_front_of_two(losses)
    dominated = np.zeros(len(losses), dtype=np.bool_)
    for start in range(0, len(losses), _ROWS):
        judges = losses[start : start + _ROWS]
        no_worse = (judges[:, None] <= losses[None]).all(axis=2)  # (i, j): judge i is no worse than j
        better = (judges[:, None] < losses[None]).any(axis=2)
        dominated |= np.any(no_worse & better, axis=0)
    return ~dominated


def _on_front_of_two(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the trials that no other dominates, in the time that sorting takes."""
    first, group = np.unique(losses[:, 0], return_inverse=True)
    least = np.full(len(first), np.inf)  # of the second loss, among trials equal in the first
    np.minimum.at(least, group, losses[:, 1])
    before = np.concatenate(([np.inf], np.minimum.accumulate(least)[:-1]))  # among those better in the first
    is_unbeaten = (group == 0) | (losses[:, 1] < before[group])
    return np.asarray(is_unbeaten & (losses[:, 1] <= least[group]))
