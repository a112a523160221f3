"""The dominated volume, against known volumes and by its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from memsweep.pareto.front import on_front
from memsweep.pareto.hypervolume import hypervolume, losses_of

POINTS = st.integers(min_value=2, max_value=4).flatmap(
    lambda n: st.integers(min_value=0, max_value=7).flatmap(
        lambda rows: arrays(np.float64, (rows, n), elements=st.integers(min_value=0, max_value=4).map(float))
    )
)


def counted(losses: NDArray[np.float64], reference: NDArray[np.float64]) -> int:
    """Return the number of unit cells that are dominated: the volume, where losses are whole numbers."""
    corners = np.stack(np.meshgrid(*(np.arange(0, end) for end in reference)), axis=-1)
    cells = corners.reshape(-1, len(reference))
    return int((losses[:, None] <= cells[None]).all(axis=2).any(axis=0).sum()) if len(losses) else 0


@pytest.mark.parametrize(
    "losses, expected",
    [
        ([[0.0, 0.0]], 1.0),
        ([[0.5, 0.5]], 0.25),
        ([[0.0, 0.5], [0.5, 0.0]], 0.75),
        ([[0.0, 0.5], [0.0, 0.5]], 0.5),
        ([[2.0, 0.0]], 0.0),
        ([[1.0, 0.0]], 0.0),
    ],
)
def test_known_areas(losses: list[list[float]], expected: float) -> None:
    assert hypervolume(np.array(losses), np.ones(2)) == pytest.approx(expected)


def test_one_objective_is_a_length() -> None:
    assert hypervolume(np.array([[0.25], [0.75]]), np.ones(1)) == pytest.approx(0.75)


def test_no_trials_cover_nothing() -> None:
    assert hypervolume(np.zeros((0, 3)), np.ones(3)) == 0.0


@given(POINTS)
def test_the_volume_is_what_counting_cells_gives(losses: NDArray[np.float64]) -> None:
    reference = np.full(losses.shape[1], 5.0)

    assert hypervolume(losses, reference) == pytest.approx(counted(losses, reference))


@given(POINTS, st.lists(st.integers(min_value=0, max_value=6).map(float), min_size=4, max_size=4))
def test_another_trial_never_makes_it_smaller(losses: NDArray[np.float64], more: list[float]) -> None:
    reference = np.full(losses.shape[1], 5.0)
    with_more = np.vstack([losses, [more[: losses.shape[1]]]])

    assert hypervolume(with_more, reference) >= hypervolume(losses, reference) - 1e-9


@given(POINTS)
def test_the_front_alone_covers_as_much_as_all(losses: NDArray[np.float64]) -> None:
    reference = np.full(losses.shape[1], 5.0)

    assert hypervolume(losses[on_front(losses)], reference) == pytest.approx(hypervolume(losses, reference))


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(1, 2\) and \(3,\)"):
        hypervolume(np.zeros((1, 2)), np.ones(3))


def test_a_reference_of_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="reference must not hold NaN"):
        hypervolume(np.zeros((1, 1)), np.array([np.nan]))


def test_doubling_a_rate_counts_the_same_wherever_it_starts() -> None:
    values = np.array([[100.0, 8.0], [200.0, 8.0], [400.0, 4.0]])
    losses = losses_of(values, maximize=[True, False], logarithmic=[True, False])

    assert losses[0, 0] - losses[1, 0] == pytest.approx(np.log(2))
    assert losses[1, 0] - losses[2, 0] == pytest.approx(np.log(2))
    assert losses[:, 1].tolist() == [8.0, 8.0, 4.0]


def test_a_value_that_has_no_logarithm_is_named() -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        losses_of(np.array([[0.0]]), maximize=[False], logarithmic=[True])
