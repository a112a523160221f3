"""What follows from all trials together: bounds, who may be compared, feasibility, front.

A later trial can change what an earlier one is: it may dominate it, or, where a constraint is about the
baseline and the baseline could not be measured, move the bound.  So can a repeat: what is judged are
medians over a trial's runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from memsweep.pareto.front import on_front
from memsweep.record.comparable import differences
from memsweep.record.outcome import CutShort, Measured
from memsweep.record.study import Constraint, Direction, Reference, Study
from memsweep.record.trial import TrialResult

# The worst corner is this many times worse than the first measured trial, on a logarithmic axis.
_WORSE = 4.0
_OF_THE_SOURCE = ("objectives", "constraints", "feasible", "on_front", "unlike")
_RATIO_UNITS = ("_per_second", "_bytes", "_seconds", "_tokens")


def settled(
    study: Study, results: Sequence[TrialResult], baseline: Mapping[str, float]
) -> tuple[Study, list[TrialResult]]:
    """Return the study with what is known by now filled in, and every trial judged by it.

    Args:
        study: What it set out to do.
        results: Its trials, in the order they finished.
        baseline: What the baseline measured, and the numbers among its facts.
    """
    first = next((result for result in results if isinstance(result.outcome, Measured)), None)
    if study.compared_with is None and first is not None:
        study = replace(
            study,
            compared_with=first.number,
            conditions=dict(first.conditions),
            trial_versions=dict(first.versions),
        )
    judged = [_summarized(result, study) for result in results]
    own = [result for result in judged if result.objectives and result.reused_from is None]
    comparable = [result for result in own if not result.unlike]
    bounds = {name: _bounded(c, comparable, baseline) for name, c in study.constraints.items()}
    if bounds != study.constraints:
        study = replace(study, constraints=bounds)
    if first is not None and not study.reference:
        study = replace(study, reference=references(study, first.objectives))
    judged = [_judged(result, study) for result in judged]
    feasible = [i for i, result in enumerate(judged) if result.feasible and result.reused_from is None]
    losses = study.losses([judged[index] for index in feasible])
    shape = (len(feasible), len(study.objectives))
    marks = on_front(np.array(losses, dtype=np.float64).reshape(shape))
    for index, mark in zip(feasible, marks, strict=True):
        judged[index] = replace(judged[index], on_front=bool(mark))
    return study, _with_twins(judged)


def _summarized(result: TrialResult, study: Study) -> TrialResult:
    """Return a trial with the medians of its runs, and how it differs from what it would be compared with."""
    if not isinstance(result.outcome, Measured):
        return result
    medians, first = result.medians, f"trial {study.compared_with}"
    return replace(
        result,
        objectives={name: medians[name] for name in study.objectives},
        unlike=(
            *differences(result.conditions, study.conditions, first),
            *differences(result.versions, study.trial_versions, first),
        ),
    )


def _judged(result: TrialResult, study: Study) -> TrialResult:
    # What was measured until a trial was cut short says which demands it broke, and by how much at least.
    if result.unlike or not (result.objectives or isinstance(result.outcome, CutShort)):
        return replace(result, constraints={}, feasible=False, on_front=False)
    medians = result.medians
    violations = {name: constraint.violation(medians) for name, constraint in study.constraints.items()}
    known = {name: violation for name, violation in violations.items() if violation is not None}
    is_sound = bool(result.objectives) and not result.objections
    is_feasible = is_sound and all(violation <= 0 for violation in known.values())
    return replace(result, constraints=known, feasible=is_feasible, on_front=False)


def _with_twins(results: list[TrialResult]) -> list[TrialResult]:
    """Return `results` with those that reuse another's measurement judged as that one, repeats and all."""
    by_number = {result.number: result for result in results}
    found = []
    for result in results:
        source = None if result.reused_from is None else by_number.get(result.reused_from)
        if source is None or not result.objectives or not source.objectives:
            found.append(result)
            continue
        found.append(replace(result, **{name: getattr(source, name) for name in _OF_THE_SOURCE}))
    return found


def _bounded(
    constraint: Constraint, comparable: Sequence[TrialResult], baseline: Mapping[str, float]
) -> Constraint:
    """Return a constraint with the baseline's measure for its bound.

    Where the baseline ended without it, the best that any trial has measured takes its place.
    """
    if not constraint.of_baseline:
        return constraint
    known = [r.medians[constraint.measure] for r in comparable if constraint.measure in r.measures]
    best = (min if constraint.upper else max)(known, default=None)
    return replace(constraint, bound=baseline.get(constraint.measure, best))


def references(study: Study, first: Mapping[str, float]) -> dict[str, Reference]:
    """Return the worst corner for hypervolumes, from the first trial that was measured.

    Args:
        study: Its objectives and constraints.
        first: That trial's objectives.
    """
    found = {}
    for name, direction in study.objectives.items():
        value = first[name]
        limits = [
            c.bound for c in study.constraints.values() if c.measure == name and c.upper and not c.of_baseline
        ]
        is_ratio = name.endswith(_RATIO_UNITS) and value > 0
        if limits and direction is Direction.MINIMIZE and limits[0] is not None:
            found[name] = Reference(
                value=limits[0], logarithmic=is_ratio and limits[0] > 0, why="the constraint's bound"
            )
        elif is_ratio:
            worse = value / _WORSE if direction is Direction.MAXIMIZE else value * _WORSE
            found[name] = Reference(
                value=worse, logarithmic=True, why=f"{_WORSE:g} times worse than the first trial"
            )
        else:
            step = max(abs(value), 1.0)
            worse = value - step if direction is Direction.MAXIMIZE else value + step
            found[name] = Reference(
                value=worse, logarithmic=False, why=f"the first trial's value, worse by {step:g}"
            )
    return found
