"""Fit a noisy curve: a small Hydra app with several ways to do it, and no training library in sight.

python fit.py features=fourier features.n=8           one fit
python fit.py -m hparams_search=front                 the Pareto front of error and bytes
"""

from __future__ import annotations

from typing import Any

import hydra
import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig

Array = NDArray[np.floating[Any]]


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> dict[str, float] | float:
    """Return the held-out error and the bytes held, or the one of them that `optimized_metric` names."""
    rng = np.random.default_rng(config.data.seed)
    x = rng.uniform(-1, 1, 2 * config.data.n_points)
    y = np.abs(x) + np.sin(8 * x) / 4 + rng.normal(0, config.data.noise, x.size)
    seen, unseen = slice(0, config.data.n_points), slice(config.data.n_points, None)
    columns = design(config.features.kind, config.features.n, x).astype(config.precision)
    weights, held_bytes = solve(config.solver, columns[seen], y[seen].astype(config.precision))
    misses = columns[unseen] @ weights - y[unseen]
    measures = {"error": float(np.sqrt(np.mean(misses**2))), "bytes": float(held_bytes)}
    return measures[config.optimized_metric] if config.optimized_metric else measures


def design(kind: str, n_columns: int, x: Array) -> Array:
    """Return what the curve is made of, (n_points, n_columns)."""
    index = np.arange(n_columns)
    if kind == "polynomial":
        return x[:, None] ** index
    if kind == "fourier":
        return np.cos(np.pi / 2 * np.ceil(index / 2) * x[:, None] - np.pi / 2 * (index % 2))
    centres = np.linspace(-1, 1, n_columns)
    return np.exp(-((n_columns / 2 * (x[:, None] - centres)) ** 2))


def solve(solver: DictConfig, columns: Array, y: Array) -> tuple[Array, int]:
    """Return the weights, (n_columns,), and how many bytes finding them held."""
    if solver.kind == "exact":
        weights, *_ = np.linalg.lstsq(columns, y, rcond=None)
        return weights, 2 * columns.nbytes  # the decomposition is as large as what it is of
    weights = np.zeros(columns.shape[1], dtype=columns.dtype)
    velocity = np.zeros_like(weights)
    for _ in range(solver.steps):
        ahead = weights + solver.momentum * velocity if solver.nesterov else weights
        gradient = columns.T @ (columns @ ahead - y) / len(y)
        velocity = solver.momentum * velocity - solver.rate * gradient
        weights = weights + velocity
    return weights, columns.nbytes + weights.nbytes + velocity.nbytes


if __name__ == "__main__":
    main()
