"""How much a cell is expected to add to the front: the expected improvement of its hypervolume.

Objectives are losses, each normal and independent of the others.  For one objective this is the expected
improvement; for two it is exact, strip by strip below the front; for more, the mean over random directions
of the expected improvement of one number, whose mean over all directions is the hypervolume.

Sources: Jones, Schonlau and Welch 1998, "Efficient Global Optimization of Expensive Black-Box Functions",
equation 15; Emmerich, Deutz and Klinkenberg 2011, "Hypervolume-based expected improvement: monotonicity
properties and exact computation", for two; Zhang and Golovin 2020, "Random Hypervolume Scalarizations for
Provable Multi-Objective Black Box Optimization", lemma 5, for more.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from memsweep.pareto.front import on_front

Array = NDArray[np.float64]

_DIRECTIONS = 64
_DRAWS = 32


def expected_improvement(
    mean: Array, spread: Array, losses: Array, reference: Array, rng: np.random.Generator
) -> Array:
    """Return by how much each cell is expected to enlarge the hypervolume.

    Args:
        mean: (n_cells, n_objectives) of the losses; smaller is better.
        spread: (n_cells, n_objectives) standard deviations.
        losses: (n_trials, n_objectives) measured so far; none is fine.
        reference: (n_objectives,) the worst corner.
        rng: Draws directions and outcomes where there are more than two objectives.

    Returns:
        (n_cells,).
    """
    inside = losses[(losses < reference).all(axis=1)]
    front = np.unique(inside[on_front(inside)], axis=0)
    n_objectives = len(reference)
    if n_objectives == 1:
        best = min(front[:, 0], default=reference[0])
        found: Array = below(mean[:, 0], spread[:, 0], np.array([best]))[:, 0]
        return found
    if n_objectives == 2:
        return _of_two(mean, spread, front, reference)
    return _of_many(mean, spread, front, reference, rng)


def below(mean: Array, spread: Array, limits: Array) -> Array:
    """Return how far each normal is expected to be below each limit, counting nothing above it: (n, m)."""
    z = (limits[None] - mean[:, None]) / spread[:, None]
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    return np.asarray(np.maximum(spread[:, None] * (z * ndtr(z) + density), 0.0))


def _of_two(mean: Array, spread: Array, front: Array, reference: Array) -> Array:
    # Between two neighbours of the front in the first loss, what is free lies below the better neighbour's
    # second loss; best first in one is worst first in the other.
    edges = np.concatenate((front[:, 0], reference[:1]))
    ceilings = np.concatenate((reference[1:], front[:, 1]))
    depth = below(mean[:, 0], spread[:, 0], edges)
    width = depth - np.concatenate((np.zeros((len(mean), 1)), depth[:, :-1]), axis=1)
    height = below(mean[:, 1], spread[:, 1], ceilings)
    return np.asarray((width * height).sum(axis=1))


def _of_many(mean: Array, spread: Array, front: Array, reference: Array, rng: np.random.Generator) -> Array:
    n_objectives = len(reference)
    directions = np.abs(rng.normal(size=(_DIRECTIONS, n_objectives)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    draws = rng.normal(size=(_DRAWS, n_objectives))
    gain = np.zeros(len(mean))
    for direction in directions:
        # How far along the direction a point reaches from the reference.
        reached = np.maximum(((reference - front) / direction).min(axis=1), 0.0).max(initial=0.0)
        for draw in draws:
            reach = np.maximum(((reference - mean - spread * draw) / direction).min(axis=1), 0.0)
            gain += np.maximum(reach**n_objectives - reached**n_objectives, 0.0)
    return gain
