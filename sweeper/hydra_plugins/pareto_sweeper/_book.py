"""The trials so far, and what follows from all of them together: bounds, feasibility, front, counts.

A later trial can change what an earlier one is: it may dominate it, or, where a constraint is about the
baseline and the baseline could not be measured, move the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from memsweep.pareto.front import on_front
from memsweep.record.outcome import Measured, Outcome, Reused
from memsweep.record.study import Constraint, Direction, Reference, Study
from memsweep.record.trial import TrialRecord, TrialResult

from ._app import Verdict
from ._tell import counts_as_trial

# The worst corner is this many times worse than the first measured trial, on a logarithmic axis.
_WORSE = 4.0
_RATIO_UNITS = ("_per_second", "_bytes", "_seconds", "_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A trial that is to be entered, as it was asked for.

    Attributes:
        number: Its number.
        parameters: Searched key to label.
        overrides: What it is given.
        verdict: What the app makes of it.
        inside: Parameter name to label, of those that the sampler could have drawn.
        is_baseline: It is what the others are compared with.
    """

    number: int
    parameters: Mapping[str, str]
    overrides: tuple[str, ...]
    verdict: Verdict
    inside: Mapping[str, str]
    is_baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a trial ended.

    Attributes:
        record: What its folder holds.
        folder: Its folder.
        returned: What the app returned, as plain data; None where it returned nothing.
        reused_from: Number of the trial whose outcome this is; None when its own.
    """

    record: TrialRecord
    folder: Path
    returned: Any = None
    reused_from: int | None = None


class Book:
    """Every finished trial of a study.

    Attributes:
        study: What the study set out to do; its bounds and reference point are filled in as they are known.
        results: The trials in the order they finished.
        asked: Number to trial, as it was asked for.
        ended: Number to how it ended.
    """

    def __init__(self, study: Study, program: str = "train.py") -> None:
        self.study = study
        self._program = program
        self.results: list[TrialResult] = []
        self.asked: dict[int, Asked] = {}
        self.ended: dict[int, Ended] = {}
        self._by_request: dict[str, int] = {}
        self._baseline_measures: dict[str, float] = {}

    def enter(self, asked: Asked, ended: Ended) -> TrialResult:
        """Enter a finished trial and return it as it stands."""
        record, outcome = ended.record, ended.record.outcome
        self.asked[asked.number], self.ended[asked.number] = asked, ended
        if asked.verdict.requested_hash:
            self._by_request.setdefault(asked.verdict.requested_hash, asked.number)
        measures = dict(getattr(outcome, "measures", {}))
        is_measured = isinstance(outcome, Measured | Reused)
        reused_from = outcome.trial if isinstance(outcome, Reused) else ended.reused_from
        result = TrialResult(
            number=asked.number,
            outcome=outcome,
            choice=asked.verdict.choice,
            parameters=asked.parameters,
            overrides=asked.overrides,
            objectives={name: measures[name] for name in self.study.objectives} if is_measured else {},
            measures=measures,
            constraints={},
            feasible=False,
            on_front=False,
            requested_hash=asked.verdict.requested_hash,
            effective_hash=record.effective_hash,
            changes=asked.verdict.changes,
            reused_from=reused_from,
            seconds=record.seconds,
            versions=record.versions,
            program=self._program,
        )
        if asked.is_baseline:
            numbers = {key: value for key, value in record.facts.items() if _is_number(value)}
            self._baseline_measures = {**numbers, **measures}
        self.results.append(result)
        self._settle()
        return self.results[-1]

    def same_request(self, requested_hash: str) -> TrialResult | None:
        """Return the trial that has asked for the same; None when there is none."""
        number = self._by_request.get(requested_hash)
        return None if number is None else self[number]

    def forget_request(self, requested_hash: str) -> None:
        """Let a request be made again: its trial ended for reasons that were not its own."""
        self._by_request.pop(requested_hash, None)

    def __getitem__(self, number: int) -> TrialResult:
        return next(result for result in self.results if result.number == number)

    @property
    def known_set_ups(self) -> dict[str, int]:
        """Effective hash to the number of the trial that measured it."""
        return {
            result.effective_hash: result.number
            for result in reversed(self.results)
            if result.effective_hash is not None and isinstance(result.outcome, Measured)
        }

    @property
    def n_counted(self) -> int:
        """How many of the n_trials asked for have been run."""
        return sum(counts_as_trial(result) for result in self.results)

    @property
    def front(self) -> list[TrialResult]:
        """The Pareto front, best in the first objective first; each set-up once."""
        rows = [result for result in self.results if result.on_front and result.reused_from is None]
        losses = dict(zip((row.number for row in rows), self.study.losses(rows), strict=True))
        return sorted(rows, key=lambda row: (losses[row.number], row.number))

    def counts(self) -> dict[str, int]:
        """Return outcome type to number of trials."""
        return dict(Counter(result.outcome.type for result in self.results))

    def misses(self) -> dict[str, float]:
        """Return each constraint's least violation among the trials measured, of those that none meets."""
        found: dict[str, list[float]] = {}
        for result in self.results:
            for name, violation in result.constraints.items():
                found.setdefault(name, []).append(violation)
        return {name: min(values) for name, values in found.items() if min(values) > 0}

    def _settle(self) -> None:
        """Fill in what is known by now, and judge every trial by it."""
        measured = [result for result in self.results if result.objectives]
        bounds = {name: self._bounded(c, measured) for name, c in self.study.constraints.items()}
        if bounds != self.study.constraints:
            self.study = replace(self.study, constraints=bounds)
        if measured and not self.study.reference:
            self.study = replace(self.study, reference=references(self.study, measured[0].objectives))
        judged = [self._judged(result) for result in self.results]
        feasible = [index for index, result in enumerate(judged) if result.feasible]
        losses = self.study.losses([judged[index] for index in feasible])
        shape = (len(feasible), len(self.study.objectives))
        marks = on_front(np.array(losses, dtype=np.float64).reshape(shape))
        for index, mark in zip(feasible, marks, strict=True):
            judged[index] = replace(judged[index], on_front=bool(mark))
        # What has not changed stays the same object: its line in results.jsonl need not be made again.
        self.results = [old if old == new else new for old, new in zip(self.results, judged, strict=True)]

    def _judged(self, result: TrialResult) -> TrialResult:
        if not result.objectives:
            return result
        violations = {n: c.violation(result.measures) for n, c in self.study.constraints.items()}
        known = {name: violation for name, violation in violations.items() if violation is not None}
        return replace(
            result, constraints=known, feasible=all(v <= 0 for v in known.values()), on_front=False
        )

    def _bounded(self, constraint: Constraint, measured: Sequence[TrialResult]) -> Constraint:
        """Return a constraint with the baseline's measure for its bound.

        Where the baseline ended without it, the best that any trial has measured takes its place.
        """
        if not constraint.of_baseline:
            return constraint
        known = [
            result.measures[constraint.measure]
            for result in measured
            if constraint.measure in result.measures
        ]
        best = (min if constraint.upper else max)(known, default=None)
        return replace(constraint, bound=self._baseline_measures.get(constraint.measure, best))


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


def reused(outcome: Outcome, number: int) -> Outcome:
    """Return the outcome of a trial that asks for what trial `number` asked for."""
    return Reused(trial=number, measures=outcome.measures) if isinstance(outcome, Measured) else outcome


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
