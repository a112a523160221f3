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
    dominated = np.zeros(len(losses), dtype=np.bool_)
    for start in range(0, len(losses), _ROWS):
        judges = losses[start : start + _ROWS]
        no_worse = (judges[:, None] <= losses[None]).all(axis=2)  # (i, j): judge i is no worse than j
        better = (judges[:, None] < losses[None]).any(axis=2)
        dominated |= np.any(no_worse & better, axis=0)
    return ~dominated
