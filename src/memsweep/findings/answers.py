"""The questions that a study is started for, each answered by one trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memsweep.findings.find import Findings
from memsweep.findings.gains import baseline_gains, times_text
from memsweep.findings.views import View, change_words, view
from memsweep.findings.words import changes_text, name_text
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text

BEST = {"tokens_per_second": "Fastest", "peak_memory_bytes": "Smallest"}
"""What the best trial in an objective is called."""

ENOUGH = 0.9
"""Share of the best speed that is still as good as the best to whoever is short of memory."""

# What is best, and among which: `Fastest`, ` that fits in 24.0 GiB`.
_Question = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to the question that a study was started for.

    Attributes:
        title: `Fastest`, `Smallest`, ...; several, joined, where one trial is the answer to each.
        condition: Among which trials, or at which price.
        result: The trial.
    """

    title: str
    condition: str
    result: TrialResult


def answers(findings: Findings) -> tuple[Answer, ...]:
    """Return the answers among set-ups that train the same, and those of all where they are better."""
    same = _asked(view(findings, ()), findings.study)
    known = {(question, result.number) for question, result in same}
    everything = _asked(view(findings, change_words(findings)), findings.study)
    better = [(question, result) for question, result in everything if (question, result.number) not in known]
    return (*_answered(same), *_answered(better, " of all"))


def answers_among(shown: View, findings: Findings) -> tuple[Answer, ...]:
    """Return the best trial of a view in each objective, and the smallest that is fast enough."""
    return _answered(_asked(shown, findings.study))


def _asked(shown: View, study: Study) -> list[tuple[_Question, TrialResult]]:
    found = []
    for name in study.objectives:
        best = best_of(shown.candidates, name, study)
        if best is not None:
            found.append(((_superlative(name), _fit_text(study, name)), best))
    return [*found, *_fast_enough(shown.candidates, study)]


def _answered(asked: Sequence[tuple[_Question, TrialResult]], of: str = "") -> tuple[Answer, ...]:
    """Return answers to questions, one a trial."""
    titles: dict[int, list[str]] = {}
    for (best, among), result in asked:
        titles.setdefault(result.number, []).append(f"{best}{of}{among}")
    trials = {result.number: result for _, result in asked}
    return tuple(
        Answer(
            title=_joined(texts),
            condition=changes_text(trials[number].changes).lower(),
            result=trials[number],
        )
        for number, texts in titles.items()
    )


def _superlative(objective: str) -> str:
    return BEST.get(objective, f"Best {name_text(objective)}")


def best_of(results: Sequence[TrialResult], objective: str, study: Study) -> TrialResult | None:
    """Return the best of some trials in one objective; the first of equals, None of none."""
    sign = -1 if study.objectives[objective] is Direction.MAXIMIZE else 1
    return min(results, key=lambda result: (sign * result.objectives[objective], result.number), default=None)


def cost_text(findings: Findings, shown: View) -> str:
    """Return what the baseline costs: how much better a view is in each objective; empty when it is not.

    Each multiple is told with its interval, or that it is hardly known.
    """
    parts = []
    for name, direction in findings.study.objectives.items():
        best = best_of(shown.candidates, name, findings.study)
        gain = None if best is None else baseline_gains(findings, best).get(name)
        is_better = gain is not None and (gain.ratio > 1) == (direction is Direction.MAXIMIZE)
        if gain is not None and is_better and gain.ratio != 1:
            parts.append(times_text(gain, name))
    return f"To be had: {' or '.join(parts)}" if parts else ""


def _fit_text(study: Study, objective: str) -> str:
    """Return the budgets of the other objectives: ` that fits in 24.0 GiB`."""
    bounds = [
        measure_text(demand.measure, demand.bound)
        for demand in study.constraints.values()
        if demand.upper
        and demand.bound is not None
        and not demand.of_baseline
        and demand.measure in study.objectives
        and demand.measure != objective
    ]
    return f" that fits in {' and '.join(bounds)}" if bounds else ""


def _fast_enough(results: Sequence[TrialResult], study: Study) -> list[tuple[_Question, TrialResult]]:
    """Return the best in each minimized objective among those near the best in the maximized one."""
    speeds = [name for name, direction in study.objectives.items() if direction is Direction.MAXIMIZE]
    others = [name for name, direction in study.objectives.items() if direction is Direction.MINIMIZE]
    best = best_of(results, speeds[0], study) if len(speeds) == 1 else None
    if best is None or best.objectives[speeds[0]] <= 0:
        return []
    least = ENOUGH * best.objectives[speeds[0]]
    near = [result for result in results if result.objectives[speeds[0]] >= least]
    among = f" at {100 * ENOUGH:g} % of the best {name_text(speeds[0])}"
    found = ((name, best_of(near, name, study)) for name in others)
    return [((_superlative(name), among), result) for name, result in found if result is not None]


def _joined(titles: Sequence[str]) -> str:
    """Return several titles as one: `Fastest, and smallest at 90 % of the best throughput`."""
    rest = [title[0].lower() + title[1:] for title in titles[1:]]
    return ", and ".join([titles[0], *rest])
