"""What a study found, before it becomes text, page or W&B table: counts, baseline, fronts, figures.

All that is shown is taken from here, so two presentations cannot disagree.  Only numbers that were
measured are here: a trial without objectives has an outcome and a reason, and no place in a picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memsweep.findings.covered import covered
from memsweep.findings.intervals import Interval, interval, ties
from memsweep.pareto.front import on_front
from memsweep.record.outcome import OUTCOME_TYPES
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The trials of the fronts that change the same things.

    Attributes:
        changes: What they change beside speed and memory; empty when nothing.
        results: The trials, best in the first objective first.
    """

    changes: tuple[str, ...]
    results: tuple[TrialResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a study found.

    Attributes:
        study: What it set out to do.
        results: Every finished trial, by number.
        baseline: The measured trial of the baseline; None when there is none.
        front: Feasible trials that no other dominates, best in the first objective first.
        same_front: The front of those alone that train exactly what the baseline trains.
        tied: Number of a member of the front to those of the other members that it cannot be told from.
        contenders: Number of a feasible trial off the front to those of the members that it cannot be told
            from: it might as well be on the front.
    """

    study: Study
    results: tuple[TrialResult, ...]
    baseline: TrialResult | None
    front: tuple[TrialResult, ...]
    same_front: tuple[TrialResult, ...]
    tied: Mapping[int, tuple[int, ...]]
    contenders: Mapping[int, tuple[int, ...]]

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives, in the study's order."""
        return tuple(self.study.objectives)

    @property
    def measured(self) -> tuple[TrialResult, ...]:
        """Trials with objectives of their own: each is one point of a picture."""
        return tuple(result for result in self.results if result.objectives and result.reused_from is None)

    @property
    def unmeasured(self) -> tuple[TrialResult, ...]:
        """Trials without objectives: they have a reason, and no place in a picture."""
        return tuple(result for result in self.results if not result.objectives)

    @property
    def has_repeats(self) -> bool:
        """Whether some trials were run more than once."""
        return any(result.repeats for result in self.results)

    def kinds(self) -> tuple[tuple[str, ...], ...]:
        """Return every different set of changes among the feasible trials, the smallest first."""
        kinds = {result.changes for result in self.measured if result.feasible}
        return tuple(sorted(kinds, key=lambda kind: (len(kind), kind)))

    def groups(self) -> tuple[Group, ...]:
        """Both fronts by what the set-ups change, those that change least first."""
        shown = {result.number: result for result in (*self.front, *self.same_front)}.values()
        members = {kind: [result for result in shown if result.changes == kind] for kind in self.kinds()}
        return tuple(
            Group(changes=kind, results=_best_first(results, self.study))
            for kind, results in members.items()
            if results
        )

    def counts(self) -> dict[str, int]:
        """Return outcome type to number of trials, in the order of `OUTCOME_TYPES`, none left out."""
        counter = Counter(result.outcome.type for result in self.results)
        return {name: counter[name] for name in OUTCOME_TYPES if counter[name]}

    def is_baseline(self, result: TrialResult) -> bool:
        """Tell whether `result` is the baseline that the others are compared with."""
        return self.baseline is not None and self.baseline.number == result.number

    def ratio(self, result: TrialResult, objective: str) -> float | None:
        """Return an objective of `result` as a multiple of the baseline's; None where there is none."""
        reference = self.baseline.objectives.get(objective) if self.baseline is not None else None
        value = result.objectives.get(objective)
        return None if value is None or not reference else value / reference

    def kept_share(self, result: TrialResult) -> float | None:
        """Return tokens that a pass trains on as a share of the baseline's; None where not known."""
        if self.baseline is None:
            return None
        kept, reference = result.measures.get("kept_tokens"), self.baseline.measures.get("kept_tokens")
        return None if kept is None or not reference else kept / reference

    def interval(self, result: TrialResult, objective: str) -> Interval | None:
        """Return the 95 % interval of an objective; None where nothing is known of its spread."""
        if result.reused_from is not None:
            sources = (other for other in self.results if other.number == result.reused_from)
            return interval(next(sources, result), objective)
        return interval(result, objective)

    def figure(self, result: TrialResult, objective: str) -> str:
        """Return an objective of a measured trial with its unit, and its interval where it has one."""
        return measure_text(objective, result.objectives[objective], self.interval(result, objective))

    def sentence(self, result: TrialResult) -> str:
        """Return the objectives of a measured trial, with units and intervals."""
        return ", ".join(self.figure(result, name) for name in self.objectives)

    def hypervolume(self) -> float | None:
        """Return what the front covers, up to the study's reference point; None until that is fixed."""
        return covered(self.study, self.front)


def find(results: Iterable[TrialResult], study: Study) -> Findings:
    """Return what `results` say.

    Fronts are made anew from the objectives: a line of results.jsonl knows only the trials before it.

    Args:
        results: Finished trials, in any order.
        study: What they were for.
    """
    ordered = tuple(sorted(results, key=lambda result: result.number))
    feasible = [result for result in ordered if result.feasible and result.reused_from is None]
    front = front_of(feasible, study)
    members = {result.number for result in front}
    others = [result for result in feasible if result.number not in members]
    return Findings(
        study=study,
        results=ordered,
        baseline=_baseline(ordered),
        front=front,
        same_front=front_of([result for result in feasible if not result.changes], study),
        tied=ties(front, front, tuple(study.objectives)),
        contenders=ties(others, front, tuple(study.objectives)),
    )


def _baseline(results: Sequence[TrialResult]) -> TrialResult | None:
    """Return the first measured trial that chose only baselines; an app without techniques has none."""
    for result in results:
        if result.choice and set(result.choice.values()) == {"baseline"} and result.objectives:
            return result
    return None


def front_of(results: Sequence[TrialResult], study: Study) -> tuple[TrialResult, ...]:
    """Return the trials that no other dominates, best in the first objective first.

    Args:
        results: Trials with objectives.
        study: What is better in each.
    """
    if not results:
        return ()
    is_on_front = on_front(np.array(study.losses(results)))
    return _best_first([result for result, is_on in zip(results, is_on_front, strict=True) if is_on], study)


def _best_first(results: Sequence[TrialResult], study: Study) -> tuple[TrialResult, ...]:
    losses = study.losses(results)
    order = sorted(range(len(results)), key=lambda index: (losses[index], results[index].number))
    return tuple(results[index] for index in order)
