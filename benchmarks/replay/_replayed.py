"""One study replayed: a sampler searches a table, as in a sweep, and every answer is looked up."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from _table import MAXIMIZE, OBJECTIVES, Table
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState

from memsweep.record.outcome import Measured, Outcome, OutOfMemory, Phase, Reused
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.search.ask import Asker
from memsweep.search.structured.beliefs import Prior
from memsweep.search.tell import told, worst_values

OFFICIAL = "official"
"""The official Hydra plugin's default, as far as this version of Optuna has it: see `_officially`."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a sampler did.

    Attributes:
        tried: Rows of the table, in the order of the trials; -1 for a trial that was illegal.
        n_reused: Proposals beside these whose set-up had been measured, which cost no trial.
        seconds: (n_trials,) that the sampler took to ask.
    """

    tried: Sequence[int]
    n_reused: int
    seconds: NDArray[np.float64]


def study_of(table: Table) -> Study:
    """Return the study that a sweep of the table would be."""
    directions = [Direction.MAXIMIZE if up else Direction.MINIMIZE for up in MAXIMIZE]
    return Study(
        name=table.name,
        created="",
        command="",
        objectives=dict(zip(OBJECTIVES, directions, strict=True)),
    )


def asker_of(table: Table, sampler: Mapping[str, Any], seed: int, prior: Prior | None = None) -> Asker:
    """Return what asks for trials of the table."""
    return Asker(table.space(), table.judge, sampler, seed, study_of(table), prior=prior)


def replayed(
    table: Table, sampler: Mapping[str, Any], seed: int, n_trials: int, prior: Prior | None = None
) -> Replayed:
    """Search a table, beginning with the baseline, and return which cells were tried.

    Args:
        table: The table.
        sampler: As `hydra.sweeper.sampler`; `{"name": OFFICIAL}` for the official plugin's.
        seed: The sampler's.
        n_trials: Trials to run; fewer where the space is exhausted.
        prior: Predictions that the sampler may use; None for none.
    """
    if sampler["name"] == OFFICIAL:
        return _officially(table, seed, n_trials)
    asker, study = asker_of(table, sampler, seed, prior), study_of(table)
    results: list[TrialResult] = []
    tried: list[int] = []
    measured: dict[int, int] = {}  # set-up to the number of the trial that measured it
    n_reused = 0
    seconds: list[float] = []
    baseline = asker.space.cell({})
    while len(tried) < n_trials:
        began = time.perf_counter()
        worst = worst_values(study, results)
        proposal = asker.propose(worst) if tried else asker.of_cell(baseline, is_baseline=True)
        seconds.append(time.perf_counter() - began)
        if proposal is None:
            break
        row = table.index[tuple(proposal.verdict.choice[name] for name in table.levels)]
        set_up = row if table.set_up is None else int(table.set_up[row])
        result = result_of(table, row, len(results), measured.get(set_up))
        results.append(result)
        if result.reused_from is not None:
            n_reused += 1
        else:
            tried.append(row)
            if table.fits[row]:
                measured[set_up] = result.number
        asker.tell(proposal, told(result, study, worst_values(study, results)))
    return Replayed(tried, n_reused, np.array(seconds))


def result_of(table: Table, row: int, number: int, reused_from: int | None = None) -> TrialResult:
    """Return trial `number`, which measured a row of the table, or ran out of memory.

    Args:
        table: The table.
        row: Of the table.
        number: Of the trial.
        reused_from: Number of the trial that has measured the same set-up; None when none has.
    """
    values = dict(zip(OBJECTIVES, map(float, table.values[row]), strict=True))
    fits = bool(table.fits[row])
    outcome: Outcome
    if reused_from is not None:
        outcome = Reused(trial=reused_from, measures=values)
    elif fits:
        outcome = Measured(measures=values)
    else:  # a device knows what it held when it gave out, not what was needed
        held = int(table.limit)
        outcome = OutOfMemory(
            where="device", phase=Phase.WARM_UP, requested_bytes=0, held_bytes=held, evidence=""
        )
    return TrialResult(
        number=number,
        outcome=outcome,
        choice=dict(zip(table.levels, table.cells[row], strict=True)),
        parameters={},
        overrides=(),
        objectives=values if fits else {},
        measures=values if fits else {},
        constraints={},
        feasible=fits,
        on_front=False,
        requested_hash="",
        effective_hash=None,
        changes=(),
        reused_from=reused_from,
        seconds={"total": float(table.seconds[row])},
        versions={},
    )


def _officially(table: Table, seed: int, n_trials: int) -> Replayed:
    """Search as the official plugin does: what fails for any reason is told as failed, nothing is remembered.

    Its default is Optuna 2.10's `TPESampler()`: parameters one by one, 10 random trials first, no constant
    liar.  That algorithm is asked of this Optuna, whose defaults differ.
    """
    sampler = optuna.samplers.TPESampler(
        multivariate=False, group=False, constant_liar=False, n_startup_trials=10, seed=seed
    )
    directions = ["maximize" if up else "minimize" for up in MAXIMIZE]
    study = optuna.create_study(directions=directions, sampler=sampler)
    distributions = {name: CategoricalDistribution(tuple(options)) for name, options in table.levels.items()}
    study.enqueue_trial({name: options[0] for name, options in table.levels.items()})
    tried: list[int] = []
    seconds: list[float] = []
    for _ in range(n_trials):
        began = time.perf_counter()
        trial = study.ask()
        cell = tuple(
            trial.suggest_categorical(name, distribution.choices)
            for name, distribution in distributions.items()
        )
        seconds.append(time.perf_counter() - began)
        row = table.index.get(cell, -1)
        tried.append(row)
        if row >= 0 and table.fits[row]:
            study.tell(trial, [float(value) for value in table.values[row]])
        else:
            study.tell(trial, state=TrialState.FAIL)
    return Replayed(tried, 0, np.array(seconds))
