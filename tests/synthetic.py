"""Finished studies without any training: what the tests of reports are fed with."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from memsweep.record.outcome import (
    Crashed,
    Incompatible,
    Measured,
    Outcome,
    OutOfMemory,
    Phase,
    Reused,
    TimedOut,
)
from memsweep.record.study import Constraint, Direction, Reference, Study
from memsweep.record.trial import TrialResult
from memsweep.units import GIB, MIB

KEPT_BY_BASELINE = 12_000.0
BUDGET_BYTES = 520.0 * MIB

OPTIONS = {
    "adapter": ("baseline", "lora"),
    "checkpointing": ("baseline", "disabled"),
    "packing": ("baseline", "bfd"),
    "truncation": ("baseline", "max_length"),
    "micro_batch": ("baseline", "size"),
}
CHANGES = {"lora": "trained_parameters", "bfd": "batch", "max_length": "data"}
SPEED = {"lora": 0.93, "disabled": 1.27, "bfd": 1.18, "max_length": 1.05, "size": 0.88}
MEMORY = {"lora": 0.82, "disabled": 1.29, "bfd": 0.94, "max_length": 0.9, "size": 0.79}


def measured(number: int, choice: dict[str, str], **facts: Any) -> TrialResult:
    """Return a measured trial whose figures follow from its choice."""
    options = [option for option in choice.values() if option != "baseline"]
    speed, memory = 1_172.0, 413.0 * MIB
    for option in options:
        speed, memory = speed * SPEED[option], memory * MEMORY[option]
    kept = KEPT_BY_BASELINE * (0.8 if "max_length" in options else 1.0)
    objectives = {"tokens_per_second": round(speed, 2), "peak_memory_bytes": round(memory)}
    defaults: dict[str, Any] = {
        "number": number,
        "outcome": Measured(measures={**objectives, "kept_tokens": kept}),
        "choice": choice,
        "parameters": {f"technique/{name}": option for name, option in choice.items()},
        "overrides": tuple(f"technique/{name}={option}" for name, option in choice.items()),
        "objectives": objectives,
        "measures": {**objectives, "kept_tokens": kept},
        "constraints": {"memory_budget": memory - BUDGET_BYTES, "kept_tokens": KEPT_BY_BASELINE - kept},
        "feasible": kept >= KEPT_BY_BASELINE and memory <= BUDGET_BYTES,
        "on_front": False,
        "requested_hash": f"{number:016x}",
        "effective_hash": f"{number:016x}",
        "changes": tuple(sorted({CHANGES[option] for option in options if option in CHANGES})),
        "reused_from": None,
        "seconds": {"start": 0.05, "build": 1.4, "warm_up": 1.1, "measure": 2.4, "end": 0.02, "total": 5.2},
        "versions": {"torch": "2.13.0", "trl": "1.16.0"},
    }
    return TrialResult(**defaults | facts)


def ended(number: int, choice: dict[str, str], outcome: Outcome) -> TrialResult:
    """Return a trial that ended without figures."""
    nothing: dict[str, float] = {}
    return measured(
        number,
        choice,
        outcome=outcome,
        objectives=nothing,
        measures=nothing,
        constraints=nothing,
        feasible=False,
    )


def trials_of_every_kind(n_trials: int) -> tuple[TrialResult, ...]:
    """Return `n_trials` trials, the baseline first, with every end that a study meets among them."""
    choices = [dict(zip(OPTIONS, options, strict=True)) for options in itertools.product(*OPTIONS.values())]
    results = []
    for number in range(n_trials):
        choice = choices[number % len(choices)]
        result = measured(number, choice)
        if number >= len(choices):
            # Like a repetition: near the first, and never exactly equal.
            scale = 1 + ((number * 37) % 101 - 50) / 800
            objectives = {
                "tokens_per_second": round(result.objectives["tokens_per_second"] * scale, 2),
                "peak_memory_bytes": round(result.objectives["peak_memory_bytes"] * (2 - scale)),
            }
            result = dataclasses.replace(result, objectives=objectives)
        match number % 8:
            case 3:
                oom = OutOfMemory(
                    where="device",
                    phase=Phase.WARM_UP,
                    requested_bytes=3 * GIB,
                    held_bytes=21 * GIB,
                    evidence="CUDA out of memory",
                )
                result = ended(number, choice, oom)
            case 5 if number % 16 == 5:
                lines = ("Traceback (most recent call last):", "RuntimeError: shapes <2> & <3> do not fit")
                crash = Crashed(reason=lines[-1], phase=Phase.BUILD, last_lines=lines, process_exit_code=1)
                result = ended(number, choice, crash)
            case 6:
                source = results[number - 6]
                if source.objectives:
                    result = dataclasses.replace(
                        result,
                        outcome=Reused(trial=source.number, measures=source.measures),
                        objectives=source.objectives,
                        measures=source.measures,
                        constraints=source.constraints,
                        feasible=source.feasible,
                        reused_from=source.number,
                    )
            case 7 if number % 16 == 7:
                result = ended(number, choice, TimedOut(limit_seconds=120, phase=Phase.MEASURE))
            case 7:
                rule = "packing=bfd needs truncation=max_length: a pack has a length"
                result = ended(number, choice, Incompatible(violations=(rule,)))
        results.append(result)
    return tuple(results)


def study_of(n_trials: int, **facts: Any) -> Study:
    """Return what a study of `n_trials` trials set out to do."""
    defaults: dict[str, Any] = {
        "name": "example",
        "created": "2026-11-29T12:00:00+00:00",
        "command": "python train.py -m trainer=sft model=small",
        "objectives": {"tokens_per_second": Direction.MAXIMIZE, "peak_memory_bytes": Direction.MINIMIZE},
        "constraints": {
            "memory_budget": Constraint(measure="peak_memory_bytes", upper=True, bound=BUDGET_BYTES),
            "kept_tokens": Constraint(
                measure="kept_tokens", upper=False, bound=KEPT_BY_BASELINE, of_baseline=True
            ),
        },
        "reference": {
            "tokens_per_second": Reference(value=293.0, logarithmic=True, why="a quarter of the baseline's"),
            "peak_memory_bytes": Reference(
                value=1_652.0 * MIB, logarithmic=True, why="4 times the baseline's"
            ),
        },
        "n_trials": n_trials,
        "context": {"trainer": "sft", "model": "small", "dataset": "embedded", "measure": "quick"},
        "versions": {"optuna": "5.0.0", "hydra-core": "1.3.8"},
        "ended": "all trials that were asked for",
    }
    return Study(**defaults | facts)
