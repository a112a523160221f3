"""What follows from all trials together: bounds, who may be compared, feasibility, front.

A later trial can change what an earlier one is: it may dominate it, or, where a constraint is about the
baseline and the baseline could not be measured, move the bound.  So can a repeat: what is judged are
medians over a trial's runs.

A study may have thousands of trials: one that has just ended is judged, and the others again only where it
changed the terms for all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    study: Study,
    results: Sequence[TrialResult],
    baseline: Mapping[str, float],
    changed: Collection[int] | None = None,
) -> tuple[Study, list[TrialResult]]:
    """Return the study with what is known by now filled in, and every trial judged by it.

    What is as it was stays the same object.

    Args:
        study: What it set out to do.
        results: Its trials, in the order they finished.
        baseline: What the baseline measured, and the numbers among its facts.
        changed: Places of those that are new or were measured again; all others, and the study, are as an
            earlier call returned them, so that they need not be judged anew unless the study's own terms
            change.  None: all are new.
    """
    everything = range(len(results))
    again: Collection[int] = everything if changed is None else changed
    first = next((result for result in results if isinstance(result.outcome, Measured)), None)
    if study.compared_with is None and first is not None:
        study = replace(
            study,
            compared_with=first.number,
            conditions=dict(first.conditions),
            trial_versions=dict(first.versions),
        )
        again = everything
    judged = list(results)
    for place in again:
        judged[place] = _summarized(results[place], study)
    bounds = {name: _bounded(c, judged, baseline) for name, c in study.constraints.items()}
    if bounds != study.constraints:
        study, again = replace(study, constraints=bounds), everything
    if first is not None and not study.reference:
        study = replace(study, reference=references(study, first.objectives))
    for place in again:
        judged[place] = _judged(judged[place], study)
    _mark_front(study, judged, results, again)
    _judge_twins(judged)
    return study, [old if old is new or old == new else new for old, new in zip(results, judged, strict=True)]


def _mark_front(
    study: Study, judged: list[TrialResult], before: Sequence[TrialResult], again: Collection[int]
) -> None:
    """Mark in `judged` what is on the front.

    A trial that is dominated is dominated by a member of the front.  So as long as every member has stayed
    what it was, only they and what has changed can be on it.

    Args:
        study: The study.
        judged: The trials; those that have not been judged anew are marked as they were.
        before: The same before they were.
        again: Places of those that have been.
    """
    is_moved = any(before[place].on_front for place in again)
    among = [
        place
        for place, result in enumerate(judged)
        if result.feasible and result.reused_from is None and (is_moved or result.on_front or place in again)
    ]
    shape = (len(among), len(study.objectives))
    losses = np.array(study.losses([judged[place] for place in among]), dtype=np.float64).reshape(shape)
    for place, mark in zip(among, on_front(losses), strict=True):
        if judged[place].on_front != bool(mark):
            judged[place] = replace(judged[place], on_front=bool(mark))


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


def _judge_twins(judged: list[TrialResult]) -> None:
    """Judge in `judged` those that reuse another's measurement as that one, repeats and all."""
    twins = [place for place, result in enumerate(judged) if result.reused_from is not None]
    by_number = {result.number: result for result in judged} if twins else {}
    for place in twins:
        result = judged[place]
        source = by_number.get(result.reused_from or 0)
        if source is None or not result.objectives or not source.objectives:
            continue
        judged[place] = replace(result, **{name: getattr(source, name) for name in _OF_THE_SOURCE})


def _bounded(
    constraint: Constraint, judged: Sequence[TrialResult], baseline: Mapping[str, float]
) -> Constraint:
    """Return a constraint with the baseline's measure for its bound.

    Where the baseline ended without it, the best that any trial has measured takes its place, of those that
    can be compared.
    """
    if not constraint.of_baseline:
        return constraint
    if constraint.measure in baseline:
        return replace(constraint, bound=baseline[constraint.measure])
    own = [result for result in judged if result.objectives and result.reused_from is None]
    known = [r.medians[constraint.measure] for r in own if not r.unlike and constraint.measure in r.measures]
    return replace(constraint, bound=(min if constraint.upper else max)(known, default=None))


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
