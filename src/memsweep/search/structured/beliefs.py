"""What the model believes of cells that nobody has tried: objectives, constraints, what a trial takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from memsweep.pareto.front import on_front
from memsweep.search.structured.additive import Process, Scales, first_scales
from memsweep.search.structured.encoding import Encoded, Encoding
from memsweep.search.structured.history import Array, History, Mask

LARGEST = 200
"""Trials that the model is made of; of more, the newest and those nearest the front."""

_NEWEST = 60
_MARGIN = 0.3
"""How much worse than the worst of the front the reference corner is, in units of the loss."""

_LEARNING_STEPS = 15
_LEARN_AGAIN = 1.05
"""Scales are learned again once there are so many times the trials that they were learned from."""

_AROUND_A_PRIOR = 0.4
"""How much less effects matter around a prediction than without one, as a ratio."""


class Prior(Protocol):
    """What is known of the objectives before a trial is run, such as a prediction of memory and time."""

    def losses(self, cells: Sequence[Mapping[str, Any]]) -> Array:
        """Return predictions (n_cells, n_objectives): logarithms of the objectives, negated where maximized.

        Args:
            cells: Parameter to value.
        """


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed of some cells.

    Attributes:
        mean: (n_cells, n_objectives) of the losses.
        spread: (n_cells, n_objectives) standard deviations.
        chance: (n_cells,) that every constraint is kept.
        fits: (n_cells,) chance not to exceed what others ran out of, such as memory.
        seconds: (n_cells,) that a trial takes; all 1 where no trial said, or nobody asks.
        losses: (n_front, n_objectives) of the front so far.
        reference: (n_objectives,) the corner that is worse than what is worth having.
    """

    mean: Array
    spread: Array
    chance: Array
    fits: Array
    seconds: Array
    losses: Array
    reference: Array


class Believer:
    """Keeps what was learned of how much each parameter matters from one trial to the next.

    Args:
        encoding: Of the space.
        prior: Predictions; None for none.
        knows_cost: Whether to model how long trials take.
    """

    def __init__(self, encoding: Encoding, prior: Prior | None, *, knows_cost: bool) -> None:
        self._encoding, self._prior, self._knows_cost = encoding, prior, knows_cost
        self._first = first_scales(encoding.n_parameters, 1.0 if prior is None else _AROUND_A_PRIOR)
        self._scales: dict[str, Scales] = {}
        self._learned_from: dict[str, int] = {}
        self._n_trials = 0

    def beliefs(self, history: History, rows: Sequence[Mapping[str, Any]], cells: Encoded) -> Beliefs:
        """Return what is believed of cells.

        Args:
            history: Trials, at least one of them feasible.
            rows: The cells, parameter to value.
            cells: The same, encoded.
        """
        self._n_trials = len(history.number)
        history = _shortened(history)
        trials = self._encoding.encode(history.parameters)
        losses, feasible = history.losses, history.is_feasible
        n_objectives = losses.shape[1]
        mean = np.empty((len(rows), n_objectives))
        spread = np.empty_like(mean)
        limits = np.full(n_objectives, np.inf)
        known, predicted = self._offset(history.parameters, n_objectives), self._offset(rows, n_objectives)
        for column in range(n_objectives):
            bound = history.is_bound[:, column]
            mean[:, column], spread[:, column] = self._believed(
                f"objective {column}", losses[:, column] - known[:, column], bound, history, trials, cells
            )
            if bound.any():
                # What did not fit needed more than there is; the least of these is the closest to it.
                limits[column] = max(losses[bound, column].min(), losses[feasible, column].max())
        mean += predicted
        front = losses[feasible][on_front(losses[feasible])]
        fits = ndtr((limits - mean) / spread).prod(axis=1)
        return Beliefs(
            mean,
            spread,
            self._chance(history, trials, cells),
            fits,
            self._seconds(history, trials, cells),
            front,
            np.minimum(front.max(axis=0) + _MARGIN, limits),
        )

    def most_unlike(self, history: History, cells: Encoded) -> Array:
        """Return how little is known of cells before anything was learned: (n_cells,), larger is less."""
        trials = self._encoding.encode(history.parameters)
        nothing = np.zeros(len(trials))
        process = Process(self._encoding, trials, nothing, nothing.astype(np.bool_), self._first, self._first)
        return process.predict(cells)[1]

    def _offset(self, rows: Sequence[Mapping[str, Any]], n_objectives: int) -> Array:
        if self._prior is None or not rows:
            return np.zeros((len(rows), n_objectives))
        return self._prior.losses(rows)

    def _chance(self, history: History, trials: Encoded, cells: Encoded) -> Array:
        """Return the chance that all constraints are kept; what nothing has broken is taken to be kept."""
        chance = np.ones(len(cells))
        for column in range(history.violations.shape[1]):
            # What ran out of memory broke no rule beside that, which its bound already says.
            violations = np.where(history.is_bound.any(axis=1), np.nan, history.violations[:, column])
            if (violations > 0).any():
                nowhere = np.zeros(len(violations), dtype=np.bool_)
                mean, spread = self._believed(
                    f"constraint {column}", violations, nowhere, history, trials, cells
                )
                chance *= ndtr(-mean / spread)
        return chance

    def _seconds(self, history: History, trials: Encoded, cells: Encoded) -> Array:
        known = np.isfinite(history.seconds)
        if not (self._knows_cost and known.any()):
            return np.ones(len(cells))
        nowhere = np.zeros(len(known), dtype=np.bool_)
        logarithms = np.log(history.seconds, where=known, out=np.full(len(known), np.nan))
        return np.exp(self._believed("seconds", logarithms, nowhere, history, trials, cells)[0])

    def _believed(
        self, name: str, values: Array, is_bound: Mask, history: History, trials: Encoded, cells: Encoded
    ) -> tuple[Array, Array]:
        """Return mean and standard deviation of one measure.

        Args:
            name: Under which its scales are kept.
            values: (n_trials,) NaN where nothing is known.
            is_bound: (n_trials,) the value is only a lower bound.
            history: The trials; those under way are taken to come out as expected, so that cells like
                them are known better.
            trials: The same, encoded.
            cells: What to predict.
        """
        known = np.flatnonzero(np.isfinite(values))
        exact = np.flatnonzero(np.isfinite(values) & ~is_bound)
        centre = float(values[exact if len(exact) else known].mean())
        is_due = self._n_trials >= _LEARN_AGAIN * self._learned_from.get(name, 0.0)
        process = Process(
            self._encoding,
            trials[known],
            values[known] - centre,
            is_bound[known],
            self._scales.get(name, self._first),
            self._first,
            learn=_LEARNING_STEPS if is_due else 0,
        )
        if is_due:
            self._scales[name], self._learned_from[name] = process.scales, self._n_trials
        running = np.flatnonzero(history.is_running)
        if len(running):
            expected, _ = process.predict(trials[running])
            both = np.concatenate((known, running))
            process = Process(
                self._encoding,
                trials[both],
                np.concatenate((process.values, expected)),
                np.zeros(len(both), dtype=np.bool_),
                process.scales,
                self._first,
            )
        mean, spread = process.predict(cells)
        return mean + centre, spread


def _shortened(history: History) -> History:
    """Return the front, the newest trials and those nearest it, where there are too many for a model."""
    n_trials = len(history.number)
    if n_trials <= LARGEST:
        return history
    newest = np.argsort(history.number)[-_NEWEST:]
    others = np.setdiff1d(np.arange(n_trials), newest)
    # How far behind the best: the sum over objectives of how many trials are better in each.
    filled = np.nan_to_num(history.losses, nan=np.inf)
    behind = filled.argsort(axis=0).argsort(axis=0).sum(axis=1)
    feasible = np.flatnonzero(history.is_feasible)
    behind[feasible[on_front(history.losses[feasible])]] = -1
    nearest = others[np.argsort(behind[others], kind="stable")[: LARGEST - _NEWEST]]
    return history[np.sort(np.concatenate((newest, nearest)))]
