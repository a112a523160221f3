"""What a measure is where nobody has measured: an additive Gaussian process over the parameters.

Techniques act almost multiplicatively on time and memory.  So the logarithm of a measure is taken to be a
sum: a constant, one effect a parameter, one a pair of parameters, and noise:

    k(x, y) = c + S1 + b^2 (S1^2 - S2) / 2 + noise,   S1 = sum of z_j,   S2 = sum of z_j^2,
    z_j = a_j^2 r_j(x_j, y_j)

where r_j is 1 for equal choices and 0 for others (for numbers exp(-d^2 / 2 l^2)), a_j says how much parameter
j matters, and the pair of j and l has the variance (b a_j a_l)^2: what matters alone matters together.  The
a_j, b and the noise are those under which the measurements are most probable, times a prior.

Sources: Duvenaud, Nickisch and Rasmussen 2011, "Additive Gaussian Processes", for the kernel over pairs;
Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", equations 2.25, 2.26, 5.8 and 5.9 for
predictions, likelihood and its gradient, 5.10 to 5.12 for leaving one out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import log_ndtr

from memsweep.search.structured.encoding import Encoded, Encoding

Vector = NDArray[np.float64]

# Medians and spreads (of the logarithm) of the prior.  In units of the logarithm: most techniques change a
# measure by a tenth to a half, a pair by half of what the product of its effects says, repeats agree to 3 %.
_EFFECT, _EFFECT_SPREAD = 0.25, 1.0
_PAIR, _PAIR_SPREAD = 0.6, 0.5
_NOISE, _NOISE_SPREAD = 0.03, 0.5
_LIMITS = ((1e-3, 5.0), (0.05, 5.0), (3e-3, 0.5))  # of an effect, a pair, the noise
_CONSTANT = 1.0
_JITTER = 1e-8
_ROUNDS = 3
"""Times that what is known only as a bound is estimated from all else."""


@dataclass(frozen=True, slots=True)
class Scales:
    """What a process has learned of how much things matter, as logarithms.

    Attributes:
        effects: (n_parameters,) a_j.
        pair: b.
        noise: Standard deviation of repeats.
    """

    effects: Vector
    pair: float
    noise: float


def first_scales(n_parameters: int, shrink: float = 1.0) -> Scales:
    """Return what is thought before anything was measured.

    Args:
        n_parameters: How many there are.
        shrink: How much less effects matter, as a ratio; below 1 around a prediction.
    """
    return Scales(np.full(n_parameters, math.log(_EFFECT * shrink)), math.log(_PAIR), math.log(_NOISE))


class Process:
    """The distribution of one measure, given trials.

    Attributes:
        scales: What was learned.
        values: (n_trials,) those given, or what is expected where only a bound was given.

    Args:
        encoding: Of the space.
        trials: Those measured.
        values: (n_trials,) the measure, centred by the caller; where `is_bound`, what it is at least.
        is_bound: (n_trials,) the value is only a lower bound.
        scales: To begin from, and, unless `learn`, to keep.
        prior: What was thought first, which the learned scales are held to.
        learn: Steps of learning; 0 keeps the scales.
    """

    def __init__(
        self,
        encoding: Encoding,
        trials: Encoded,
        values: Vector,
        is_bound: NDArray[np.bool_],
        scales: Scales,
        prior: Scales,
        learn: int = 0,
    ) -> None:
        self._encoding, self._trials = encoding, trials
        self.scales = scales
        # One row a parameter, so that sums over parameters and over pairs of trials are products of matrices.
        self._parts = encoding.likenesses(trials, trials).reshape(encoding.n_parameters, -1)
        self._squares = self._parts**2
        self._slack = np.zeros(len(values))
        self.values = values
        if is_bound.any():
            self._estimate(values, is_bound)
        if learn:
            self._learn(prior, learn)
            if is_bound.any():
                self._estimate(values, is_bound)
        self._settle()

    def predict(self, cells: Encoded) -> tuple[Vector, Vector]:
        """Return mean and standard deviation of the measure, without noise.

        Args:
            cells: m cells.

        Returns:
            (m,) and (m,).
        """
        weights = np.exp(2 * self.scales.effects)
        pair = math.exp(2 * self.scales.pair)
        cross = _covariance(
            self._encoding.likeness(self._trials, cells, weights),
            self._encoding.likeness_squared(self._trials, cells, weights),
            pair,
        )
        mean = cross.T @ self._weights
        total = weights.sum()
        own = _CONSTANT + total + pair * (total**2 - (weights**2).sum()) / 2
        half = solve_triangular(self._factor, cross, lower=True, check_finite=False)
        return mean, np.sqrt(np.maximum(own - (half**2).sum(axis=0), 1e-12))

    def _kernel(self, scales: Scales) -> tuple[Vector, Vector, Vector]:
        """Return the covariance of the trials with noise, S1 and S2; all (n, n)."""
        weights = np.exp(2 * scales.effects)
        shape = (len(self.values), len(self.values))
        first = (weights @ self._parts).reshape(shape)
        second = (weights**2 @ self._squares).reshape(shape)
        covariance = _covariance(first, second, math.exp(2 * scales.pair))
        covariance[np.diag_indices_from(covariance)] += math.exp(2 * scales.noise) + self._slack + _JITTER
        return covariance, first, second

    def _settle(self) -> None:
        covariance = self._kernel(self.scales)[0]
        self._factor = np.linalg.cholesky(covariance)
        self._weights = cho_solve((self._factor, True), self.values, check_finite=False)

    def _estimate(self, bounds: Vector, is_bound: NDArray[np.bool_]) -> None:
        """Put what is expected in the place of what is known only as a bound.

        Each such value is the mean of a normal cut off at the bound, with mean and variance as all other
        trials have it; its variance is added to the noise of that trial.
        """
        values = bounds.copy()
        for _ in range(_ROUNDS):
            inverse = np.linalg.inv(self._kernel(self.scales)[0])
            spread = np.sqrt(1 / np.diag(inverse))
            mean = values - (inverse @ values) * spread**2
            at = (bounds - mean) / spread
            tail = np.exp(-0.5 * at**2 - log_ndtr(-at)) / math.sqrt(2 * math.pi)
            values = np.where(is_bound, np.maximum(mean + spread * tail, bounds), bounds)
            cut = spread**2 * np.maximum(1 + at * tail - tail**2, 0.01)
            self._slack = np.where(is_bound, cut, 0.0)
        self.values = values

    def _learn(self, prior: Scales, steps: int) -> None:
        """Move the scales to where measurements and prior are more probable."""
        middle = np.concatenate((prior.effects, [prior.pair, prior.noise]))
        spread = np.concatenate((np.full(len(prior.effects), _EFFECT_SPREAD), [_PAIR_SPREAD, _NOISE_SPREAD]))
        diagonal = np.diag_indices(len(self.values))

        def loss(point: Vector) -> tuple[float, Vector]:
            scales = Scales(point[:-2], point[-2], point[-1])
            covariance, first, second = self._kernel(scales)
            try:
                factor = cho_factor(covariance, lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                return 1e10, np.zeros_like(point)
            inverse = cho_solve(factor, np.eye(len(covariance)), check_finite=False)
            weights = inverse @ self.values
            off = (point - middle) / spread
            value = 0.5 * self.values @ weights + np.log(factor[0][diagonal]).sum() + 0.5 * off @ off
            # d loss / d theta = (tr(K^-1 dK) - w' dK w) / 2
            pull = inverse - np.outer(weights, weights)
            pair = math.exp(2 * scales.pair)
            # With weights z = a^2 r: dK / d log a_j = 2 (z_j (1 + b^2 S1) - b^2 z_j^2)
            squared = np.exp(2 * scales.effects)
            effects = squared * (self._parts @ (pull * (1 + pair * first)).ravel())
            effects -= pair * squared**2 * (self._squares @ pull.ravel())
            pairs = 0.5 * pair * (pull * (first**2 - second)).sum()
            noise = math.exp(2 * scales.noise) * pull[diagonal].sum()
            return float(value), np.concatenate((effects, [pairs, noise])) + off / spread

        start = np.concatenate((self.scales.effects, [self.scales.pair, self.scales.noise]))
        limits = [(math.log(low), math.log(high)) for low, high in _LIMITS]
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[limits[0]] * len(prior.effects) + limits[1:],
            options={"maxiter": steps},
        )
        self.scales = Scales(found.x[:-2], float(found.x[-2]), float(found.x[-1]))


def _covariance(first: Vector, second: Vector, pair: float) -> Vector:
    return _CONSTANT + first + 0.5 * pair * (first**2 - second)
