"""The structured sampler inside a plain Optuna study."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution

from memsweep.search.structured.history import ELSEWHERE, KNOWN, SECONDS
from memsweep.search.structured.sampler import StructuredSampler

LEVELS = {name: CategoricalDistribution(("0", "1", "2")) for name in "abcde"}
CELLS = [dict(zip(LEVELS, labels, strict=True)) for labels in itertools.product("012", repeat=5)]
SPEED = {
    "a": (0.0, 0.6, 0.9),
    "b": (0.0, 0.2, -0.3),
    "c": (0.0, 0.05, 0.1),
    "d": (0, 0, 0),
    "e": (0.0, -0.2, 0.1),
}
MEMORY = {
    "a": (0.0, 0.7, 1.5),
    "b": (0.0, -0.4, -0.5),
    "c": (0.0, 0.1, -0.1),
    "d": (0, 0, 0),
    "e": (0.0, -0.3, 0),
}


def measured(cell: Mapping[str, str]) -> tuple[float, float]:
    """Return speed and memory of a cell."""
    speed, memory = (
        sum(effects[name][int(label)] for name, label in cell.items()) for effects in (SPEED, MEMORY)
    )
    return 100 * math.exp(speed), 10 * math.exp(memory + 0.2 * (cell["a"] == "2") * (cell["b"] == "1"))


class Listed:
    """Offers cells that were not told to be gone."""

    def __init__(self, cells: Sequence[dict[str, str]] = tuple(CELLS)) -> None:
        self.distributions = LEVELS
        self.cells, self.gone = cells, set[int]()
        self.near: list[Sequence[Mapping[str, Any]]] = []

    def offered(self, near: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], Sequence[int]]:
        self.near.append(near)
        return self.cells, [index for index in range(len(self.cells)) if index not in self.gone]


def swept(
    candidates: Listed, n_trials: int, limit: float = math.inf, **arguments: Any
) -> list[dict[str, str]]:
    """Search, and return the cells in the order they were tried."""
    sampler = StructuredSampler(candidates, **{"seed": 0, **arguments})
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    tried = []
    for _ in range(n_trials):
        trial = study.ask()
        cell = {name: trial.suggest_categorical(name, LEVELS[name].choices) for name in LEVELS}
        candidates.gone.add(candidates.cells.index(cell))
        tried.append(cell)
        speed, memory = measured(cell)
        trial.set_user_attr(SECONDS, 1e4 / speed)
        fits = memory <= limit
        trial.set_constraint("ended", 0.0 if fits else 1.0)
        if not fits:
            trial.set_user_attr(KNOWN, [None, {"at_best": limit}])
        study.tell(trial, [speed, memory] if fits else [1.0, limit])
    return tried


def front() -> list[dict[str, str]]:
    """Return the cells that no other dominates; those that differ only in `d` are equal."""
    figures = [measured(cell) for cell in CELLS]
    return [
        cell
        for cell, (speed, memory) in zip(CELLS, figures, strict=True)
        if not any(s >= speed and m <= memory and (s > speed or m < memory) for s, m in figures)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_a_tenth_of_a_space_is_enough_to_find_most_of_its_front(seed: int) -> None:
    wanted = {measured(cell) for cell in front()}
    found = {measured(cell) for cell in swept(Listed(), 30, seed=seed)}

    assert len(wanted & found) >= 0.5 * len(wanted)


def test_no_cell_is_tried_twice_and_none_that_was_not_offered() -> None:
    offered = [cell for cell in CELLS if cell["a"] != "1"]
    tried = swept(Listed(offered), 25)

    assert len({tuple(cell.values()) for cell in tried}) == 25
    assert all(cell in offered for cell in tried)


def test_it_soon_stays_below_a_memory_limit() -> None:
    limit = float(np.median([measured(cell)[1] for cell in CELLS]))
    tried = swept(Listed(), 30, limit)
    late = [measured(cell)[1] > limit for cell in tried[15:]]

    assert np.mean(late) <= 0.1


def test_the_same_seed_asks_for_the_same() -> None:
    assert swept(Listed(), 15, seed=5) == swept(Listed(), 15, seed=5)


def test_a_prior_that_is_right_finds_the_front_at_once() -> None:
    class Right:
        def losses(self, cells: Sequence[Mapping[str, Any]]) -> Any:
            figures = np.log([measured(cell) for cell in cells])
            return figures * np.array([-1.0, 1.0])

    wanted = {measured(cell) for cell in front()}
    with_prior = {measured(cell) for cell in swept(Listed(), 12, prior=Right())}
    without = {measured(cell) for cell in swept(Listed(), 12)}

    assert len(wanted & with_prior) > len(wanted & without)


def test_asked_to_save_time_it_tries_fast_cells() -> None:
    slow, fast = (
        np.mean([1 / measured(cell)[0] for cell in swept(Listed(), 16, cost_weight=weight)[8:]])
        for weight in (0.0, 1.0)
    )

    assert fast < slow


def test_cells_like_one_that_is_under_way_are_not_asked_for_beside_it() -> None:
    candidates = Listed()
    sampler = StructuredSampler(candidates, seed=0)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    for cell in CELLS[::20]:
        study.add_trial(
            optuna.trial.create_trial(values=list(measured(cell)), params=cell, distributions=dict(LEVELS))
        )
        candidates.gone.add(CELLS.index(cell))
    asked = []
    for _ in range(4):
        trial = study.ask()
        cell = {name: trial.suggest_categorical(name, LEVELS[name].choices) for name in LEVELS}
        candidates.gone.add(CELLS.index(cell))
        asked.append(cell)

    assert len({(cell["a"], cell["b"], cell["c"], cell["e"]) for cell in asked}) > 2


def test_the_front_is_handed_over_so_that_cells_like_it_can_be_offered() -> None:
    candidates = Listed()
    tried = swept(candidates, 12)
    figures = {measured(cell) for cell in candidates.near[-1]}  # type: ignore[arg-type]

    assert figures <= {measured(cell) for cell in tried[:11]}
    assert figures


def test_nothing_offered_is_nothing_asked_for() -> None:
    candidates = Listed(CELLS[:1])
    sampler = StructuredSampler(candidates, seed=0)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    candidates.gone.add(0)

    assert study.ask().relative_params == {}


def test_more_trials_than_the_model_takes_are_no_matter() -> None:
    candidates = Listed()
    study = optuna.create_study(
        directions=["maximize", "minimize"], sampler=StructuredSampler(candidates, seed=0)
    )
    study.add_trials(
        [
            optuna.trial.create_trial(values=list(measured(cell)), params=cell, distributions=dict(LEVELS))
            for cell in [*CELLS, *CELLS[:120]]
        ]
    )

    assert study.ask().relative_params.keys() == LEVELS.keys()


def test_what_this_study_has_measured_stays_in_the_model_among_many_trials_of_others() -> None:
    candidates = Listed()
    study = optuna.create_study(
        directions=["maximize", "minimize"], sampler=StructuredSampler(candidates, seed=0, n_startup_trials=1)
    )
    first = study.ask()
    for name, distribution in LEVELS.items():
        first.suggest_categorical(name, distribution.choices)
    study.tell(first, [1.0, 1e6])  # far behind all that others have measured
    study.add_trials(
        [
            optuna.trial.create_trial(
                values=list(measured(cell)),
                params=cell,
                distributions=dict(LEVELS),
                user_attrs={ELSEWHERE: True},
            )
            for cell in [*CELLS, *CELLS[:100]]
        ]
    )

    assert study.ask().relative_params.keys() == LEVELS.keys()
