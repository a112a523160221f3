"""`structured`, an Optuna sampler: where may the front grow, if techniques multiply?

Each ask fits an additive model to what was measured (`additive.py`), and takes the cell whose expected
improvement of the hypervolume is largest (`improvement.py`), times the chance that it keeps every constraint,
over the time it takes to the power `cost_weight`.  Before the first trials have been measured it takes the
cell that the model knows least of.  Only cells that are offered are taken: what is illegal or was tried never
enters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial

from memsweep.pareto.front import on_front
from memsweep.pareto.hypervolume import hypervolume
from memsweep.search.structured.beliefs import Believer, Prior
from memsweep.search.structured.encoding import Encoded, Encoding
from memsweep.search.structured.history import History, HistoryReader
from memsweep.search.structured.improvement import expected_improvement

_WORTH_A_RISK = 0.002
"""Gain, as a share of the hypervolume so far, for which a trial may rather run out of memory than not."""

Rows = Sequence[Mapping[str, Any]]


class Candidates(Protocol):
    """Cells that a trial may be given.

    Attributes:
        distributions: Parameter to what it may be.
    """

    distributions: Mapping[str, BaseDistribution]

    def offered(self, near: Rows) -> tuple[Rows, Sequence[int]]:
        """Return cells, and the indices of those that may be tried.

        Args:
            near: The front so far: cells like its members are worth offering.

        Returns:
            Cells as parameter to value, in every call the same in the same order with new ones behind
            them; and which of them may be tried.
        """


class StructuredSampler(BaseSampler):
    """Proposes the cell with the largest expected improvement of the hypervolume, for one study.

    Args:
        candidates: Offers cells.
        n_startup_trials: Trials that are finished before the model decides; with a `prior`, one.
        cost_weight: 0 asks for the fewest trials, 1 for the least time.
        prior: Predictions that the model corrects; None for none.
        seed: Of ties, and of what is drawn for more than two objectives.
    """

    def __init__(
        self,
        candidates: Candidates,
        *,
        n_startup_trials: int = 8,
        cost_weight: float = 0.0,
        prior: Prior | None = None,
        seed: int | None = None,
    ) -> None:
        self._candidates = candidates
        self._n_startup = n_startup_trials if prior is None else 1
        self._cost_weight = cost_weight
        self._rng = np.random.default_rng(seed)
        self._independent = RandomSampler(seed=seed)
        self._encoding = Encoding(candidates.distributions)
        self._encoded = self._encoding.encode([])
        self._reader: HistoryReader | None = None
        self._believer = Believer(self._encoding, prior, knows_cost=cost_weight != 0)

    def infer_relative_search_space(
        self,
        study: optuna.Study,  # noqa: ARG002, Optuna names it
        trial: FrozenTrial,  # noqa: ARG002, Optuna names it
    ) -> dict[str, BaseDistribution]:
        """Return the whole space: what a cell does not have, nobody asks for."""
        return dict(self._candidates.distributions)

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],  # noqa: ARG002, it is that of the candidates
    ) -> dict[str, Any]:
        """Return the cell to try; nothing when none is offered."""
        if self._reader is None:
            self._reader = HistoryReader(study.directions)
        history = self._reader.read(study.get_trials(deepcopy=False), trial.number)
        feasible = np.flatnonzero(history.is_feasible)
        front = feasible[on_front(history.losses[feasible])]
        rows, may_try = self._candidates.offered([history.parameters[row] for row in front])
        if not may_try:
            return {}
        self._encoded = self._encoded.with_more(self._encoding.encode(rows[len(self._encoded) :]))
        chosen = self._chosen(history, [rows[index] for index in may_try], self._encoded[list(may_try)])
        return dict(rows[may_try[chosen]])

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a random value: the parameter is not part of the space, or no cell was offered."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Draw differently from now on."""
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()

    def reseed(self, seed: int) -> None:
        """Draw from a seed from now on."""
        self._rng = np.random.default_rng(seed)
        self._independent = RandomSampler(seed=seed)

    def _chosen(self, history: History, rows: Rows, cells: Encoded) -> int:
        if not history.number.size:
            return int(self._rng.integers(len(rows)))
        n_finished = int((~history.is_running).sum())
        if n_finished < self._n_startup or not history.is_feasible.any():
            return self._largest(self._believer.most_unlike(history, cells))
        beliefs = self._believer.beliefs(history, rows, cells)
        gain = expected_improvement(
            beliefs.mean, beliefs.spread, beliefs.losses, beliefs.reference, self._rng
        )
        gain = gain * beliefs.chance
        is_a_risk = beliefs.fits < 0.5
        if not is_a_risk.all():
            # What probably runs out of memory is worth a trial only for the sake of a larger gain.
            enough = _WORTH_A_RISK * hypervolume(beliefs.losses, beliefs.reference)
            gain = np.where(is_a_risk & (gain < enough), 0.0, gain)
        return self._largest(gain / beliefs.seconds**self._cost_weight)

    def _largest(self, values: Any) -> int:
        """Return the index of the largest value, any of them where they are equal."""
        return int(self._rng.choice(np.flatnonzero(values >= values.max() * (1 - 1e-9))))
