"""The trials so far: entered one by one, judged all together (`judge.py`), counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memsweep.record.asked import Asked
from memsweep.record.outcome import Interrupted, Measured, Outcome, Reused
from memsweep.record.study import Study
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.search.tell import counts_as_trial, worst_values
from memsweep.study.judge import settled


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
        self._places: dict[int, int] = {}
        self._by_request: dict[str, int] = {}
        self._set_ups: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._n_counted, self._n_runs = 0, 0
        self._front: list[TrialResult] | None = None
        self._worst: list[float] | None = None
        self._baseline: int | None = None
        self._baseline_facts: dict[str, float] = {}

    def enter(self, asked: Asked, ended: Ended) -> TrialResult:
        """Enter a finished trial and return it as it stands."""
        record, outcome = ended.record, ended.record.outcome
        self.asked[asked.number], self.ended[asked.number] = asked, ended
        if asked.requested_hash:
            self._by_request.setdefault(asked.requested_hash, asked.number)
        measures = dict(getattr(outcome, "measures", {}))
        is_measured = (
            isinstance(outcome, Measured | Reused) and self.study.objectives.keys() <= measures.keys()
        )
        reused_from = outcome.trial if isinstance(outcome, Reused) else ended.reused_from
        result = TrialResult(
            number=asked.number,
            outcome=outcome,
            choice=asked.choice,
            parameters=asked.parameters,
            overrides=asked.overrides,
            objectives={name: measures[name] for name in self.study.objectives} if is_measured else {},
            measures=measures,
            constraints={},
            feasible=False,
            on_front=False,
            requested_hash=asked.requested_hash,
            effective_hash=record.effective_hash,
            changes=asked.changes,
            reused_from=reused_from,
            seconds=record.seconds,
            versions=record.versions,
            program=self._program,
            conditions=record.conditions,
        )
        if asked.is_baseline:
            self._baseline = asked.number
            self._baseline_facts = {k: value for k, value in record.facts.items() if _is_number(value)}
        self._places[asked.number] = len(self.results)
        self.results.append(result)
        self._counts[outcome.type] += 1
        self._n_counted += counts_as_trial(result)
        self._n_runs += not isinstance(outcome, Interrupted)
        if isinstance(outcome, Measured) and record.effective_hash is not None:
            self._set_ups.setdefault(record.effective_hash, asked.number)
        self._settle(asked.number)
        return self.results[-1]

    def enter_repeat(self, number: int, outcome: Outcome) -> TrialResult:
        """Enter how a further run of trial `number` ended, and return the trial as it stands."""
        result = self[number]
        self.results[self._places[number]] = replace(result, repeats=(*result.repeats, outcome))
        self._n_runs += not isinstance(result.outcome, Interrupted)
        self._settle(number)
        return self[number]

    def same_request(self, requested_hash: str) -> TrialResult | None:
        """Return the trial that has asked for the same; None when there is none."""
        number = self._by_request.get(requested_hash)
        return None if number is None else self[number]

    def forget_request(self, requested_hash: str) -> None:
        """Let a request be made again: its trial ended for reasons that were not its own."""
        self._by_request.pop(requested_hash, None)

    def twin(self, record: TrialRecord) -> TrialResult | None:
        """Return the trial whose set-up another turned out to have; None when it has one of its own.

        Either its process was told of that trial and knew its number, though not its measures; or both were
        under way together, and neither could know.

        Args:
            record: Of a trial that is about to be entered.
        """
        if isinstance(record.outcome, Reused):
            source = record.outcome.trial
            return self[source] if source in self._places else None
        known = self._set_ups.get(record.effective_hash or "")
        return self[known] if isinstance(record.outcome, Measured) and known is not None else None

    def __getitem__(self, number: int) -> TrialResult:
        return self.results[self._places[number]]

    @property
    def known_set_ups(self) -> dict[str, int]:
        """Effective hash to the number of the trial that measured it."""
        return dict(self._set_ups)  # trials that run in other threads keep theirs

    @property
    def worst(self) -> list[float]:
        """Finite values for a trial that has none, one an objective."""
        if self._worst is None:
            self._worst = worst_values(self.study, self.results)
        return list(self._worst)

    @property
    def n_counted(self) -> int:
        """How many of the n_trials asked for have been run."""
        return self._n_counted

    @property
    def n_runs(self) -> int:
        """How many runs have come to an end of their own, trials and repeats."""
        return self._n_runs

    @property
    def front(self) -> list[TrialResult]:
        """The Pareto front, best in the first objective first; each set-up once."""
        if self._front is None:
            rows = [result for result in self.results if result.on_front and result.reused_from is None]
            losses = dict(zip((row.number for row in rows), self.study.losses(rows), strict=True))
            self._front = sorted(rows, key=lambda row: (losses[row.number], row.number))
        return list(self._front)

    @property
    def measured_baseline(self) -> int | None:
        """Number of the baseline of techniques, if it was measured; an app without them has none."""
        if self._baseline is None:
            return None
        result = self[self._baseline]
        return result.number if result.choice and isinstance(result.outcome, Measured) else None

    def counts(self) -> dict[str, int]:
        """Return outcome type to number of trials."""
        return dict(self._counts)

    def misses(self) -> dict[str, float]:
        """Return each constraint's least violation among the trials measured, of those that none meets."""
        found: dict[str, list[float]] = {}
        for result in self.results:
            for name, violation in result.constraints.items():
                found.setdefault(name, []).append(violation)
        return {name: min(values) for name, values in found.items() if min(values) > 0}

    def _settle(self, number: int) -> None:
        """Judge everything after trial `number` was entered, or measured again."""
        baseline = {} if self._baseline is None else self[self._baseline].medians
        facts = {**self._baseline_facts, **baseline}
        # What has not changed stays the same object: its line in results.jsonl need not be made again.
        self.study, self.results = settled(self.study, self.results, facts, [self._places[number]])
        self._front = self._worst = None


def reused(outcome: Outcome, number: int) -> Outcome:
    """Return the outcome of a trial that asks for what trial `number` asked for."""
    return Reused(trial=number, measures=outcome.measures) if isinstance(outcome, Measured) else outcome


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
