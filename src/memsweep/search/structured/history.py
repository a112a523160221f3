"""What a sampler learns from: finished trials as losses, with what is only known in part.

A trial that ran out of memory has no figures, but says that its memory is at least so much.  Whoever tells
Optuna of a trial may say what is known of it in the user attribute `KNOWN`; untold, a trial's values are
what they are, unless it violates a constraint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

KNOWN = "memsweep:known"
"""User attribute: one entry an objective, `{"is": value}`, `{"at_best": value}`, or None where unknown."""

SECONDS = "memsweep:seconds"
"""User attribute: how long the trial took."""

ELSEWHERE = "memsweep:elsewhere"
"""User attribute: the trial is another study's; it teaches, and is on no front of this one."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class History:
    """Trials as a sampler's model wants them; losses are in units of their logarithm where that is taken.

    Attributes:
        parameters: What each trial was given.
        losses: (n_trials, n_objectives); NaN where nothing is known.
        is_bound: (n_trials, n_objectives) the loss is at least this.
        violations: (n_trials, n_constraints); at most 0 is feasible; NaN where nothing is known.
        is_running: (n_trials,) under way.
        is_elsewhere: (n_trials,) another study's.
        seconds: (n_trials,) that each took; NaN where nobody said.
        number: (n_trials,) Optuna's.
    """

    parameters: Sequence[Mapping[str, Any]]
    losses: Array
    is_bound: Mask
    violations: Array
    is_running: Mask
    is_elsewhere: Mask
    seconds: Array
    number: NDArray[np.int64]

    @property
    def is_feasible(self) -> Mask:
        """(n_trials,) Measured in this study, and no constraint is violated."""
        exact = np.isfinite(self.losses).all(axis=1) & ~self.is_bound.any(axis=1)
        return np.asarray(exact & ~self.is_elsewhere & ~(self.violations > 0).any(axis=1))

    def __getitem__(self, rows: Any) -> History:
        """Return some of the trials, by index."""
        return History(
            [self.parameters[row] for row in rows],
            self.losses[rows],
            self.is_bound[rows],
            self.violations[rows],
            self.is_running[rows],
            self.is_elsewhere[rows],
            self.seconds[rows],
            self.number[rows],
        )


def read_history(
    trials: Sequence[FrozenTrial], directions: Sequence[StudyDirection], current: int
) -> History:
    """Return Optuna's trials as a history; those that failed are left out.

    Args:
        trials: Of one study.
        directions: Of its objectives.
        current: Number of the trial that is being sampled, which is no history.
    """
    kept = [
        trial
        for trial in trials
        if trial.number != current
        and (trial.state is TrialState.COMPLETE or (trial.state is TrialState.RUNNING and trial.params))
    ]
    names = sorted({name for trial in kept for name in trial.constraints})
    values = np.full((len(kept), len(directions)), np.nan)
    is_bound = np.zeros(values.shape, dtype=np.bool_)
    violations = np.full((len(kept), len(names)), np.nan)
    for row, trial in enumerate(kept):
        if trial.state is TrialState.RUNNING:
            continue
        for column, (what, value) in enumerate(_known(trial)):
            if what is not None:
                values[row, column], is_bound[row, column] = value, what == "at_best"
        for column, name in enumerate(names):
            violations[row, column] = trial.constraints.get(name, np.nan)
    return History(
        [trial.params for trial in kept],
        _losses(values, directions),
        is_bound,
        violations,
        np.array([trial.state is TrialState.RUNNING for trial in kept], dtype=np.bool_),
        np.array([ELSEWHERE in trial.user_attrs for trial in kept], dtype=np.bool_),
        np.array([trial.user_attrs.get(SECONDS, np.nan) for trial in kept], dtype=np.float64),
        np.array([trial.number for trial in kept], dtype=np.int64),
    )


def _known(trial: FrozenTrial) -> list[tuple[str | None, float]]:
    """Return how each objective is known, and its value."""
    told = trial.user_attrs.get(KNOWN)
    if told is None:
        is_known = not any(violation > 0 for violation in trial.constraints.values())
        return [("is" if is_known else None, value) for value in trial.values or ()]
    return [next(iter(one.items())) if one else (None, np.nan) for one in told]


def _losses(values: Array, directions: Sequence[StudyDirection]) -> Array:
    """Return values as losses: logarithms where all are positive, else in units of their spread."""
    losses = values.copy()
    for column, direction in enumerate(directions):
        known = values[np.isfinite(values[:, column]), column]
        if len(known) and (known > 0).all():
            losses[:, column] = np.log(values[:, column])
        elif len(known) and known.std() > 0:
            losses[:, column] = values[:, column] / (2 * known.std())
        if direction is StudyDirection.MAXIMIZE:
            losses[:, column] *= -1
    return losses
