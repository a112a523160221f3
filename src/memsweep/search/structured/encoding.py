"""Trials as numbers: which parameters two trials share, and how far apart they are in the others.

A parameter that does not exist in a trial has a value of its own, which only other such trials share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution

LENGTH = 0.3
"""How far apart two numbers of a range stop resembling each other, as a share of the range."""

_ABSENT = -1e3  # so far from [0, 1] that nothing resembles it but itself

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Trials as numbers.

    Attributes:
        one_hot: (n_trials, n_levels) 1 where a trial has the level of a parameter that lists its values.
        places: (n_trials, n_ranges) where in its range a number is, from 0 to 1.
    """

    one_hot: NDArray[np.float64]
    places: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.one_hot)

    def __getitem__(self, rows: Any) -> Encoded:
        """Return some of the trials; `rows` is whatever selects rows of an array."""
        return Encoded(self.one_hot[rows], self.places[rows])

    def with_more(self, others: Encoded) -> Encoded:
        """Return these trials and others behind them."""
        if not len(others):
            return self
        return Encoded(
            np.concatenate((self.one_hot, others.one_hot)), np.concatenate((self.places, others.places))
        )


class Encoding:
    """Encodes the trials of a space.

    Attributes:
        n_parameters: How many parameters the space has.

    Args:
        distributions: Parameter to what it may be.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self._listed = {
            name: {choice: index for index, choice in enumerate(distribution.choices)}
            for name, distribution in distributions.items()
            if isinstance(distribution, CategoricalDistribution)
        }
        self._ranges = {
            name: distribution for name, distribution in distributions.items() if name not in self._listed
        }
        self.n_parameters = len(distributions)
        sizes = [len(levels) + 1 for levels in self._listed.values()]  # one more for absence
        self._starts = np.concatenate(([0], np.cumsum(sizes))).astype(int)
        self._owner = np.repeat(np.arange(len(sizes)), sizes)

    def encode(self, rows: Rows) -> Encoded:
        """Return trials as numbers.

        Args:
            rows: Parameter to value, one mapping a trial; a parameter that is missing does not exist there,
                and a value that is not in the space resembles no other.
        """
        one_hot = np.zeros((len(rows), int(self._starts[-1])))
        places = np.full((len(rows), len(self._ranges)), _ABSENT)
        for index, row in enumerate(rows):
            for start, (name, levels) in zip(self._starts, self._listed.items(), strict=False):
                if name not in row:
                    one_hot[index, start + len(levels)] = 1.0
                elif row[name] in levels:
                    one_hot[index, start + levels[row[name]]] = 1.0
            for column, (name, distribution) in enumerate(self._ranges.items()):
                if name in row:
                    places[index, column] = _place(float(row[name]), distribution)
        return Encoded(one_hot, places)

    def likeness(self, one: Encoded, other: Encoded, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum over parameters of how alike two trials are in each, from 0 to 1.

        Args:
            one: n trials.
            other: m trials.
            weights: (n_parameters,) listed parameters first, then ranges, each in the space's order.

        Returns:
            (n, m).
        """
        n_listed = len(self._listed)
        total: NDArray[np.float64] = (one.one_hot * weights[:n_listed][self._owner]) @ other.one_hot.T
        for column, weight in enumerate(weights[n_listed:]):
            total += weight * _near(one.places[:, column], other.places[:, column])
        return total

    def likeness_squared(
        self, one: Encoded, other: Encoded, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sum over parameters of the squares of what `likeness` sums: (n, m)."""
        n_listed = len(self._listed)
        squared = weights**2
        total: NDArray[np.float64] = (one.one_hot * squared[:n_listed][self._owner]) @ other.one_hot.T
        for column, weight in enumerate(squared[n_listed:]):
            total += weight * _near(one.places[:, column], other.places[:, column]) ** 2
        return total

    def likenesses(self, one: Encoded, other: Encoded) -> NDArray[np.float64]:
        """Return how alike trials are in each parameter: (n_parameters, n, m), in the order of `likeness`."""
        found = np.empty((self.n_parameters, len(one), len(other)))
        for index in range(len(self._listed)):
            levels = slice(self._starts[index], self._starts[index + 1])
            found[index] = one.one_hot[:, levels] @ other.one_hot[:, levels].T
        for column in range(len(self._ranges)):
            found[len(self._listed) + column] = _near(one.places[:, column], other.places[:, column])
        return found


def _near(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-0.5 * ((one[:, None] - other[None]) / LENGTH) ** 2)


def _place(value: float, distribution: Any) -> float:
    low, high = float(distribution.low), float(distribution.high)
    if distribution.log:
        value, low, high = log(value), log(low), log(high)
    return (value - low) / (high - low) if high > low else 0.0
