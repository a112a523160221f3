"""The expected improvement of a hypervolume, against drawing outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from memsweep.search.structured.improvement import below, expected_improvement

REFERENCE = np.array([1.0, 1.0])


def drawn(mean: np.ndarray, spread: np.ndarray, losses: np.ndarray, reference: np.ndarray) -> float:
    """Return the mean improvement over outcomes of one cell: how many points of a grid each would win."""
    corner = np.minimum(mean - 4 * spread, reference)
    share = (np.arange(70) + 0.5) / 70
    points = corner + _pairs(share) * (reference - corner)
    is_free = ~(losses[None] <= points[:, None]).all(axis=2).any(axis=1)
    outcomes = mean + spread * ndtri(share)[:, None]
    # Every pair of the two losses' outcomes is drawn: a point is won by as many as reach it in both.
    won = [np.searchsorted(outcomes[:, at], points[is_free][:, at], side="right") for at in range(2)]
    return float((won[0] * won[1]).sum() / len(points) / len(share) ** 2 * (reference - corner).prod())


def _pairs(values: np.ndarray) -> np.ndarray:
    """Return every pair of values: (n * n, 2)."""
    return np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 6))
def test_of_two_objectives_it_is_what_drawing_outcomes_gives(seed: int, n_losses: int) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.uniform(-0.5, 1.2, (n_losses, 2))
    mean, spread = rng.uniform(-0.5, 1.2, (1, 2)), rng.uniform(0.02, 0.5, (1, 2))
    found = expected_improvement(mean, spread, losses, REFERENCE, rng)

    assert found[0] == pytest.approx(drawn(mean[0], spread[0], losses, REFERENCE), rel=0.1, abs=0.02)


def test_of_one_objective_it_is_how_far_the_best_is_expected_to_be_beaten() -> None:
    losses = np.array([[0.4], [0.2]])
    mean, spread = np.array([[0.1], [5.0]]), np.array([[1e-6], [1e-6]])
    found = expected_improvement(mean, spread, losses, np.array([1.0]), np.random.default_rng(0))

    assert found == pytest.approx([0.1, 0.0], abs=1e-5)


def test_of_three_objectives_the_cell_that_adds_more_is_preferred() -> None:
    losses, reference = np.full((1, 3), 0.5), np.ones(3)
    mean = np.array([[0.3, 0.3, 0.3], [0.45, 0.45, 0.45], [0.6, 0.6, 0.6]])
    found = expected_improvement(mean, np.full((3, 3), 0.01), losses, reference, np.random.default_rng(0))

    assert found[0] > found[1] > found[2]
    assert found[2] == pytest.approx(0.0, abs=1e-6)


def test_what_cannot_be_better_than_the_corner_adds_nothing() -> None:
    mean, spread = np.array([[2.0, -3.0]]), np.array([[1e-3, 1e-3]])

    assert expected_improvement(mean, spread, np.empty((0, 2)), REFERENCE, np.random.default_rng(0)) == 0.0


def test_far_below_a_limit_it_is_the_distance() -> None:
    assert below(np.array([0.0]), np.array([0.01]), np.array([3.0])) == pytest.approx(3.0)
