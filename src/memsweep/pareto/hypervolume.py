"""How much a front covers: the volume it dominates, up to a stated worst corner.

The reference point is fixed once a study, so that its hypervolumes can be compared.  Rates and bytes are
compared by their ratios, so their axis is logarithmic: halving the memory counts the same at 80 GiB and at
8 GiB.

Source: Zitzler and Thiele 1998, "Multiobjective optimization using evolutionary algorithms"; the recursion
over exclusive volumes is that of While, Bradstreet and Barone 2012, "A fast way of calculating exact
hypervolumes", section III.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memsweep.pareto.front import on_front


def losses_of(
    values: NDArray[np.float64], maximize: Sequence[bool], logarithmic: Sequence[bool]
) -> NDArray[np.float64]:
    """Return `values` as losses, on the axes that hypervolumes are taken on.

    Args:
        values: (n_trials, n_objectives), in the objectives' own units.
        maximize: (n_objectives,) True where larger is better.
        logarithmic: (n_objectives,) True where ratios count, not differences.

    Returns:
        (n_trials, n_objectives); smaller is better.

    Raises:
        ValueError: If a value on a logarithmic axis is not positive.
    """
    values = np.asarray(values, dtype=np.float64).reshape(-1, len(maximize))
    losses = values.copy()
    log = np.asarray(logarithmic, dtype=np.bool_)
    if (values[:, log] <= 0).any():
        raise ValueError(f"values on a logarithmic axis must be positive, got {values[:, log].min():g}")
    losses[:, log] = np.log(values[:, log])
    return np.where(np.asarray(maximize, dtype=np.bool_), -losses, losses)


def hypervolume(losses: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Return the volume that `losses` dominate, up to `reference`.

    Exact for any number of objectives.  Its time grows with `n log n` for two and about exponentially with
    their number beyond; a front of 50 in three dimensions takes milliseconds.

    Args:
        losses: (n_trials, n_objectives); smaller is better; trials no better than `reference` in some
            objective add nothing.
        reference: (n_objectives,) the worst corner.

    Raises:
        ValueError: If the shapes do not fit, or a number is NaN.
    """
    losses = np.asarray(losses, dtype=np.float64)
    reference = np.asarray(reference, dtype=np.float64)
    if losses.ndim != 2 or reference.shape != (losses.shape[1],):
        raise ValueError(
            f"losses must be (n_trials, n_objectives) and reference (n_objectives,), "
            f"got {losses.shape} and {reference.shape}"
        )
    if np.isnan(reference).any():
        raise ValueError(f"reference must not hold NaN, got {reference.tolist()}")
    inside = losses[(losses < reference).all(axis=1)]
    front = np.unique(inside[on_front(inside)], axis=0)  # sorted by the first objective, best first
    return _volume(front, reference)


def _volume(front: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Return the volume of a front without repeats, sorted by its first column."""
    if len(front) == 0:
        return 0.0
    if front.shape[1] == 1:
        return float(reference[0] - front[0, 0])
    if front.shape[1] == 2:
        # Best first in one objective is worst first in the other: a staircase of disjoint rectangles.
        ceilings = np.concatenate(([reference[1]], front[:-1, 1]))
        return float(((reference[0] - front[:, 0]) * (ceilings - front[:, 1])).sum())
    total = 0.0
    for index, point in enumerate(front):
        # What this point dominates, less what the points after it dominate of that.
        limited = np.maximum(front[index + 1 :], point)
        overlap = np.unique(limited[on_front(limited)], axis=0)
        total += float(np.prod(reference - point)) - _volume(overlap, reference)
    return total
