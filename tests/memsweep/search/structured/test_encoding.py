"""Trials as numbers."""

from __future__ import annotations

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from memsweep.search.structured.encoding import Encoding

SPACE = {
    "rank": IntDistribution(8, 64),
    "adapter": CategoricalDistribution(("baseline", "lora")),
    "rate": FloatDistribution(1e-4, 1e-2, log=True),
}
WEIGHTS = np.array([1.0, 10.0, 100.0])  # adapter, then the ranges in their order: rank, rate


def likeness(one: dict[str, object], other: dict[str, object]) -> float:
    encoding = Encoding(SPACE)
    return float(encoding.likeness(encoding.encode([one]), encoding.encode([other]), WEIGHTS)[0, 0])


def test_equal_trials_are_alike_in_every_parameter() -> None:
    row = {"adapter": "lora", "rank": 8, "rate": 1e-3}

    assert likeness(row, row) == pytest.approx(111.0)


def test_a_parameter_that_exists_in_one_trial_only_makes_them_unlike_in_it() -> None:
    with_rank = {"adapter": "lora", "rank": 8, "rate": 1e-3}
    without = {"adapter": "baseline", "rate": 1e-3}

    assert likeness(with_rank, without) == pytest.approx(100.0)
    assert likeness(without, without) == pytest.approx(111.0)


def test_a_value_outside_the_space_resembles_none_of_it() -> None:
    assert likeness({"adapter": "dora"}, {"adapter": "lora"}) == pytest.approx(110.0)


def test_ratios_count_on_a_logarithmic_range() -> None:
    encoding = Encoding(SPACE)
    places = encoding.encode([{"rate": 1e-4}, {"rate": 1e-3}, {"rate": 1e-2}]).places[:, 1]

    assert places == pytest.approx([0.0, 0.5, 1.0])


def test_the_parts_sum_up_to_the_whole() -> None:
    encoding = Encoding(SPACE)
    rows = encoding.encode([{"adapter": "lora", "rank": 8}, {"adapter": "baseline", "rate": 3e-3}])
    parts = encoding.likenesses(rows, rows)

    assert (WEIGHTS[:, None, None] * parts).sum(axis=0) == pytest.approx(
        encoding.likeness(rows, rows, WEIGHTS)
    )
    assert ((WEIGHTS[:, None, None] * parts) ** 2).sum(axis=0) == pytest.approx(
        encoding.likeness_squared(rows, rows, WEIGHTS)
    )
