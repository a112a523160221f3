"""What each choice does to each objective over all trials, and which two choices interact.

An additive model of the objectives' logarithms: every choice multiplies an objective by the same factor
wherever it is made.  What the model leaves over is noise and interactions together, so an effect's interval
is as wide as choices depend on each other.  Only trials that were measured speak: what runs out of memory is
missing, and with it what it would have said.

Sources: Hastie, Tibshirani and Friedman 2009, The Elements of Statistical Learning, 2nd edition, section 3.2,
equations 3.6 (least squares), 3.8 (how the weights vary) and 3.14 (their intervals, here with Student's t);
an interaction is one more column, fitted to what is left over: Frisch and Waugh 1933, "Partial time
regressions as compared with individual trends", Econometrica 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from memsweep.findings.find import Findings
from memsweep.findings.gains import Gain, Gains
from memsweep.findings.setup import choice_text, set_up
from memsweep.student import t_quantile_95

MOST_LEVELS = 12
"""A key with more values, as one searched over an interval, has no effect a value: it is left out."""

LEAST_TOGETHER = 2
"""Trials that must have two choices together before their interaction is looked at."""

LEAST_INTERACTION = 0.01
"""Logarithm of a factor: what changes an objective by less than a hundredth is not worth a line."""

SHOWN_PAIRS = 12
"""Interactions that are kept, strongest first."""

_ALMOST_ZERO = 1e-8

Choice = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one choice multiplies the objectives by.

    Attributes:
        key: The technique, or another searched key.
        choice: The choice: `adapter=lora`.
        against: What it is compared with: the baseline's choice of the same key.
        n_trials: Measured trials that have it.
        gains: Objective to factor; empty where it cannot be told from other choices'.
    """

    key: str
    choice: str
    against: str
    n_trials: int
    gains: Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """What two choices together do beyond what each does by itself.

    Attributes:
        choices: The two.
        n_trials: Measured trials that have both.
        gains: Objective to factor by which both together differ from the product of their effects.
    """

    choices: tuple[str, str]
    n_trials: int
    gains: Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What the trials of a study say of its choices.

    Attributes:
        n_trials: Measured trials that the model is fitted to.
        effects: One a choice, the largest in any objective first.
        interactions: Those pairs that are known to interact in some objective, the strongest first.
        n_pairs: Pairs that were looked at: one in twenty would seem to interact by chance alone.
        spreads: Objective to the factor by which the model is typically off, where that can be known.
        left_out: Keys with too many values for an effect each.
    """

    n_trials: int
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    n_pairs: int
    spreads: Mapping[str, float]
    left_out: tuple[str, ...]


def effects(findings: Findings) -> Effects | None:
    """Return what choices do; None where fewer than three trials were measured, or all chose the same.

    What was not measured under the same conditions, or reuses another's measurement, is left out.
    """
    trials = [result for result in findings.measured if not result.unlike]
    chosen = [set_up(result) for result in trials]
    reference = set_up(findings.baseline or trials[0]) if trials else {}
    levels = _levels(chosen, reference)
    left_out = tuple(sorted({key for key, values in levels.items() if len(values) > MOST_LEVELS}))
    choices = [(key, value) for key, values in levels.items() if key not in left_out for value in values]
    if len(trials) < 3 or not choices:
        return None
    has = np.array([[one.get(key) == value for key, value in choices] for one in chosen], dtype=np.float64)
    models = {
        name: _Model(has, np.log([result.objectives[name] for result in trials]))
        for name in findings.objectives
        if all(result.objectives[name] > 0 for result in trials)
    }
    n_with = has.sum(axis=0).astype(int)
    found = [
        Effect(
            key=key,
            choice=choice_text(key, value),
            against=choice_text(key, reference[key]) if key in reference else f"no {key}",
            n_trials=int(n_with[index]),
            gains=_known({name: model.effect(index) for name, model in models.items()}),
        )
        for index, (key, value) in enumerate(choices)
    ]
    n_pairs, interactions = _interactions(choices, has, models)
    return Effects(
        n_trials=len(trials),
        effects=tuple(sorted(found, key=lambda effect: (-strength(effect.gains), effect.choice))),
        interactions=interactions,
        n_pairs=n_pairs,
        spreads={name: exp(model.spread) for name, model in models.items() if model.spread is not None},
        left_out=left_out,
    )


def strength(gains: Gains) -> float:
    """Return how far the furthest of some factors is from one, whichever way."""
    return max((abs(log(gain.ratio)) for gain in gains.values()), default=0.0)


def _levels(chosen: Sequence[Mapping[str, str]], reference: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each key with the values that some trial has and the reference has not."""
    found: dict[str, set[str]] = {}
    for one in chosen:
        for key, value in one.items():
            if reference.get(key) != value:
                found.setdefault(key, set()).add(value)
    return {key: sorted(values) for key, values in sorted(found.items())}


def _known(gains: Mapping[str, Gain | None]) -> dict[str, Gain]:
    return {name: gain for name, gain in gains.items() if gain is not None}


class _Model:
    """Least squares of one objective's logarithms on choices.

    Args:
        has: (n_trials, n_choices) 1 where a trial has a choice, else 0.
        logs: (n_trials,) logarithms of the objective.
    """

    def __init__(self, has: NDArray[np.float64], logs: NDArray[np.float64]) -> None:
        columns = np.hstack([np.ones((len(has), 1)), has])
        left, sizes, right = np.linalg.svd(columns, full_matrices=False)
        rank = int((sizes > sizes[0] * max(columns.shape) * np.finfo(np.float64).eps).sum())
        self._basis, sizes, self._right = left[:, :rank], sizes[:rank], right[:rank]
        self._weights = self._right.T @ ((self._basis.T @ logs) / sizes)
        self._rest = logs - columns @ self._weights
        self._n_free = len(logs) - rank
        self._variances = ((self._right / sizes[:, None]) ** 2).sum(axis=0)

    @property
    def spread(self) -> float | None:
        """Standard deviation of what is left over; None where as many choices as trials leave nothing."""
        return sqrt(float(self._rest @ self._rest) / self._n_free) if self._n_free > 0 else None

    def effect(self, index: int) -> Gain | None:
        """Return the factor of a choice; None where it cannot be told from others' factors."""
        if 1 - (self._right[:, index + 1] ** 2).sum() > _ALMOST_ZERO:
            return None
        error = None if self.spread is None else self.spread * sqrt(float(self._variances[index + 1]))
        return _gain(float(self._weights[index + 1]), error, self._n_free)

    def interaction(self, both: NDArray[np.float64]) -> Gain | None:
        """Return the factor of having two choices, beyond theirs; None where it cannot be known.

        Args:
            both: (n_trials,) 1 where a trial has both, else 0.
        """
        own = both - self._basis @ (self._basis.T @ both)  # what no sum of single choices says
        size = float(own @ own)
        if size < _ALMOST_ZERO or self._n_free < 2:
            return None
        weight = float(own @ self._rest) / size
        left_over = max(0.0, float(self._rest @ self._rest) - weight**2 * size)
        return _gain(weight, sqrt(left_over / (self._n_free - 1) / size), self._n_free - 1)


def _gain(weight: float, error: float | None, n_free: int) -> Gain:
    if error is None:
        return Gain(ratio=exp(weight), interval=None)
    arm = t_quantile_95(n_free) * error
    return Gain(ratio=exp(weight), interval=(_exp(weight - arm), _exp(weight + arm)))


def _exp(value: float) -> float:
    """Return e to a power, finite whatever little is known: an interval may span all there is."""
    return exp(max(-700.0, min(700.0, value)))


def _interactions(
    choices: Sequence[Choice], has: NDArray[np.float64], models: Mapping[str, _Model]
) -> tuple[int, tuple[Interaction, ...]]:
    """Return how many pairs of choices were looked at, and those that interact beyond noise."""
    n_pairs, found = 0, []
    for one, other in itertools.combinations(range(len(choices)), 2):
        both = has[:, one] * has[:, other]
        if choices[one][0] == choices[other][0] or both.sum() < LEAST_TOGETHER:
            continue
        gains = _known({name: model.interaction(both) for name, model in models.items()})
        n_pairs += bool(gains)
        if strength(_sure(gains)) > LEAST_INTERACTION:
            names = (choice_text(*choices[one]), choice_text(*choices[other]))
            found.append(Interaction(choices=names, n_trials=int(both.sum()), gains=gains))
    found.sort(key=lambda pair: (-strength(_sure(pair.gains)), pair.choices))
    return n_pairs, tuple(found[:SHOWN_PAIRS])


def _sure(gains: Gains) -> dict[str, Gain]:
    return {name: gain for name, gain in gains.items() if gain.is_sure}
