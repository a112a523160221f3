"""The Pareto front, by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from memsweep.pareto.front import on_front

LOSSES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12).map(
        lambda shape: (shape[0], min(shape[1], 4))
    ),
    elements=st.integers(min_value=-3, max_value=3).map(float),
)


def dominates(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool((one <= other).all() and (one < other).any())


def test_equal_trials_both_stay_on_the_front() -> None:
    losses = np.array([[1.0, 2.0], [1.0, 2.0]])

    assert on_front(losses).tolist() == [True, True]


def test_a_trial_that_is_worse_in_one_and_better_in_none_is_not_on_it() -> None:
    losses = np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 9.0]])

    assert on_front(losses).tolist() == [True, False, True]


def test_no_trials_have_no_front() -> None:
    assert on_front(np.zeros((0, 2))).tolist() == []


def test_infinite_losses_are_dominated_by_finite_ones() -> None:
    losses = np.array([[1.0, 1.0], [np.inf, np.inf]])

    assert on_front(losses).tolist() == [True, False]


def test_nan_is_named_by_row() -> None:
    with pytest.raises(ValueError, match=r"NaN in rows \[1\]"):
        on_front(np.array([[1.0, 2.0], [np.nan, 2.0]]))


def test_a_flat_list_of_losses_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be \(n_trials, n_objectives\), got shape \(2,\)"):
        on_front(np.array([1.0, 2.0]))


def test_more_trials_than_are_compared_at_once() -> None:
    rng = np.random.default_rng(0)
    losses = rng.integers(0, 30, size=(700, 2)).astype(float)
    expected = [not any(dominates(other, one) for other in losses) for one in losses]

    assert on_front(losses).tolist() == expected


@given(LOSSES)
def test_the_front_is_what_nothing_dominates(losses: NDArray[np.float64]) -> None:
    expected = [not any(dominates(other, one) for other in losses) for one in losses]

    assert on_front(losses).tolist() == expected


@given(LOSSES)
def test_everything_off_the_front_is_dominated_by_something_on_it(losses: NDArray[np.float64]) -> None:
    marks = on_front(losses)

    assert marks.any()
    assert all(any(dominates(front, other) for front in losses[marks]) for other in losses[~marks])


@given(LOSSES)
def test_a_dominated_trial_changes_nothing(losses: NDArray[np.float64]) -> None:
    worse = losses.max(axis=0, keepdims=True) + 1

    assert on_front(np.vstack([losses, worse])).tolist() == [*on_front(losses).tolist(), False]


@given(LOSSES, st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(losses: NDArray[np.float64], random: object) -> None:
    order = np.arange(len(losses))
    random.shuffle(order)  # type: ignore[attr-defined]

    assert on_front(losses[order]).tolist() == on_front(losses)[order].tolist()
