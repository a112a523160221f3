"""The additive process: what it predicts, what it learns, what a bound tells it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from scipy.optimize import approx_fprime

from memsweep.search.structured import additive as module
from memsweep.search.structured.additive import Process, Scales, first_scales
from memsweep.search.structured.encoding import Encoded, Encoding

LEVELS = {name: CategoricalDistribution(("a", "b", "c")) for name in ("x", "y", "z")}
ROWS = [dict(zip(LEVELS, labels, strict=True)) for labels in itertools.product("abc", repeat=3)]
EFFECTS = {"x": {"a": 0.0, "b": 0.5, "c": -0.4}, "y": {"a": 0.0, "b": 0.3, "c": 0.1}}


def truth(row: dict[str, str]) -> float:
    """Return two effects and one pair; z does not matter."""
    both = 0.2 if (row["x"], row["y"]) == ("b", "b") else 0.0
    return EFFECTS["x"][row["x"]] + EFFECTS["y"][row["y"]] + both


def fitted(
    rows: list[int], values: np.ndarray, is_bound: np.ndarray | None = None, learn: int = 20
) -> Process:
    encoding = Encoding(LEVELS)
    first = first_scales(3)
    bound = np.zeros(len(rows), dtype=np.bool_) if is_bound is None else is_bound
    return Process(encoding, encoding.encode([ROWS[i] for i in rows]), values, bound, first, first, learn)


def everything() -> Encoded:
    return Encoding(LEVELS).encode(ROWS)


def test_a_few_trials_tell_the_cells_that_nobody_tried() -> None:
    rng = np.random.default_rng(0)
    values = np.array([truth(row) for row in ROWS])
    tried = rng.permutation(27)[:14].tolist()
    mean, spread = fitted(tried, values[tried] - values.mean()).predict(everything())
    left = [row for row in range(27) if row not in tried]
    error = np.abs(mean + values.mean() - values)[left]

    assert error.max() < 0.25
    assert error.mean() < 0.3 * values.std()
    assert spread[left].min() > spread[tried].max()


def test_what_does_not_matter_is_found_out() -> None:
    values = np.array([truth(row) for row in ROWS])
    scales = fitted(list(range(27)), values - values.mean()).scales

    assert scales.effects[2] < math.log(0.5) + min(scales.effects[0], scales.effects[1])


def test_the_prediction_is_that_of_a_gaussian_process_with_the_documented_kernel() -> None:
    values = np.array([truth(ROWS[i]) for i in (0, 4, 9)])
    found = fitted([0, 4, 9], values, learn=0)
    a, b, noise = np.exp(found.scales.effects) ** 2, math.exp(found.scales.pair), math.exp(found.scales.noise)

    def k(one: dict[str, str], other: dict[str, str]) -> float:
        z = [a[j] * (one[name] == other[name]) for j, name in enumerate(LEVELS)]
        pairs = sum(p * q for p, q in itertools.combinations(z, 2))
        return 1.0 + sum(z) + b**2 * pairs

    tried = [ROWS[i] for i in (0, 4, 9)]
    covariance = np.array([[k(p, q) for q in tried] for p in tried]) + noise**2 * np.eye(3)
    cross = np.array([[k(p, q) for q in tried] for p in ROWS])
    mean = cross @ np.linalg.solve(covariance, values)
    variance = [k(row, row) - c @ np.linalg.solve(covariance, c) for row, c in zip(ROWS, cross, strict=True)]

    assert found.predict(everything())[0] == pytest.approx(mean, abs=1e-6)
    assert found.predict(everything())[1] == pytest.approx(np.sqrt(variance), abs=1e-5)


def test_the_gradient_that_it_learns_by_is_that_of_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(loss, start, **_):  # type: ignore[no-untyped-def]  # as scipy calls it
        point = start + 0.1
        seen.append((loss(point)[1], approx_fprime(point, lambda p: loss(p)[0], 1e-6)))
        raise InterruptedError

    monkeypatch.setattr(module, "minimize", look)
    values = np.array([truth(row) for row in ROWS])
    with pytest.raises(InterruptedError):
        fitted(list(range(27)), values - values.mean())

    assert seen[0][0] == pytest.approx(seen[0][1], abs=1e-3, rel=1e-3)


def test_a_bound_pushes_up_and_nothing_is_pushed_down_by_it() -> None:
    tried = [0, 3, 9, 12]
    values = np.array([truth(ROWS[i]) for i in tried])
    is_bound = np.array([False] * 4 + [True])
    index = 15  # x=b, y=c, z=a
    unknown = fitted(tried, values, learn=0).predict(everything())[0]
    bound = unknown[index] + 0.5
    pushed = fitted([*tried, index], np.append(values, bound), is_bound, learn=0).predict(everything())[0]
    harmless = fitted([*tried, index], np.append(values, -9.0), is_bound, learn=0).predict(everything())[0]

    assert pushed[index] > bound - 0.05
    assert harmless == pytest.approx(unknown, abs=0.02)


def test_numbers_of_a_range_resemble_their_neighbours() -> None:
    encoding = Encoding({"rate": FloatDistribution(1e-5, 1e-1, log=True)})
    trials = encoding.encode([{"rate": 1e-3}])
    first = first_scales(1)
    found = Process(encoding, trials, np.array([1.0]), np.array([False]), first, first)
    mean, spread = found.predict(encoding.encode([{"rate": 1.1e-3}, {"rate": 1e-1}]))

    assert mean[0] > mean[1]
    assert spread[0] < spread[1]


def test_scales_stay_where_they_were_without_learning() -> None:
    first = Scales(np.zeros(3), 0.0, -2.0)
    encoding = Encoding(LEVELS)
    found = Process(encoding, encoding.encode(ROWS), np.zeros(27), np.zeros(27, np.bool_), first, first)

    assert found.scales is first
