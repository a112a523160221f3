"""What a sampler learns from: finished trials as losses, with what is only known in part.

A trial that ran out of memory has no figures, but says that its memory is at least so much.  Whoever tells
Optuna of a trial may say what is known of it in the user attribute `KNOWN`; untold, a trial's values are
what they are, unless it violates a constraint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class _Row(NamedTuple):
    """One finished trial; of one under way only its parameters are known."""

    number: int
    parameters: Mapping[str, Any]
    values: Sequence[float]
    is_bound: Sequence[bool]
    constraints: Mapping[str, float]
    is_elsewhere: bool
    seconds: float
    is_running: bool


class HistoryReader:
    """Reads the trials of one study; those that have finished are read once.

    Args:
        directions: Of the study's objectives.
    """

    def __init__(self, directions: Sequence[StudyDirection]) -> None:
        self._directions = directions
        self._finished: dict[int, _Row] = {}

    def read(self, trials: Sequence[FrozenTrial], current: int) -> History:
        """Return Optuna's trials as a history; those that failed are left out.

        Args:
            trials: Of the study.
            current: Number of the trial that is being sampled, which is no history.
        """
        rows = [row for trial in trials if (row := self._row(trial, current)) is not None]
        names = sorted({name for row in rows for name in row.constraints})
        shape = (len(rows), len(self._directions))
        values = np.array([row.values for row in rows], dtype=np.float64).reshape(shape)
        violations = [[row.constraints.get(name, np.nan) for name in names] for row in rows]
        return History(
            [row.parameters for row in rows],
            _losses(values, self._directions),
            np.array([row.is_bound for row in rows], dtype=np.bool_).reshape(shape),
            np.array(violations, dtype=np.float64).reshape(len(rows), len(names)),
            np.array([row.is_running for row in rows], dtype=np.bool_),
            np.array([row.is_elsewhere for row in rows], dtype=np.bool_),
            np.array([row.seconds for row in rows], dtype=np.float64),
            np.array([row.number for row in rows], dtype=np.int64),
        )

    def _row(self, trial: FrozenTrial, current: int) -> _Row | None:
        found = self._finished.get(trial.number)
        if found is not None:
            return found
        if trial.state is TrialState.RUNNING and trial.params and trial.number != current:
            nothing = [np.nan] * len(self._directions)
            no = [False] * len(self._directions)
            return _Row(trial.number, trial.params, nothing, no, {}, False, np.nan, True)
        if trial.state is not TrialState.COMPLETE:
            return None
        known = _known(trial)
        attributes = trial.user_attrs
        found = _Row(
            number=trial.number,
            parameters=trial.params,
            values=[np.nan if what is None else value for what, value in known],
            is_bound=[what == "at_best" for what, _ in known],
            constraints=trial.constraints,
            is_elsewhere=ELSEWHERE in attributes,
            seconds=attributes.get(SECONDS, np.nan),
            is_running=False,
        )
        self._finished[trial.number] = found
        return found


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
