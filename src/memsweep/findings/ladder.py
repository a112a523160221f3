"""What each choice brings: alone, on top of the others, and step by step up to the best combination.

Only trials that were run are here.  A study runs some for this at its end; whatever of it is missing is
said to be missing, never reckoned from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from memsweep.findings.find import Findings
from memsweep.findings.gains import Gains, gains
from memsweep.findings.setup import SetUp, choice_text, differences, set_up
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step up to the best combination.

    Attributes:
        adds: The choices that it has and the rung below has not; several where no trial lies between.
        result: The trial that has them all so far.
        gains: What it brings against the start.
        steps: What it brings against the rung below.
    """

    adds: tuple[str, ...]
    result: TrialResult
    gains: Gains
    steps: Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One choice, alone and in the best combination.

    Attributes:
        key: The technique, or another searched key.
        choice: The choice: `adapter=lora`.
        alone: The trial that differs from the start in this alone; None when there is none.
        alone_gains: What that brings against the start; empty when it gave no figures.
        is_in_top: Whether the best combination has it.
        without: The trial that differs from the best combination in not having it; None when there is none.
        top_gains: What the best combination brings against that one.
    """

    key: str
    choice: str
    alone: TrialResult | None
    alone_gains: Gains
    is_in_top: bool
    without: TrialResult | None
    top_gains: Gains


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """How one set-up becomes another, and what each part of it brings.

    Attributes:
        start: Below the first rung.
        top: The best combination: that with the largest product of gains over all objectives.
        rungs: From `start`, which is left out, to `top`; empty when they are the same.
        parts: Every choice that was tried and `start` has not, those of `top` first.
    """

    start: TrialResult
    top: TrialResult
    rungs: tuple[Rung, ...]
    parts: tuple[Part, ...]


def ladder(findings: Findings, members: Sequence[TrialResult]) -> Ladder | None:
    """Return the ladder to the best of some trials; None without a start, or without members.

    It starts from the baseline; in an app without techniques from the first trial that was measured.

    Args:
        findings: What the study found.
        members: Among which the best is taken: a front.
    """
    start = findings.baseline or next(iter(findings.measured), None)
    top = best(members, findings.study)
    if start is None or top is None or (findings.baseline is None and start.choice):
        return None
    trials = _by_set_up(findings.results)
    bottom, above = set_up(start), set_up(top)
    return Ladder(
        start=start,
        top=top,
        rungs=_rungs(findings, start, top, trials),
        parts=tuple(
            _part(findings, key, value, start, top, trials) for key, value in _choices(trials, bottom, above)
        ),
    )


def best(members: Sequence[TrialResult], study: Study) -> TrialResult | None:
    """Return the trial with the largest product of gains; None without any.

    Objectives that are not above zero count by their share of the range among `members`.
    """
    gained = dict.fromkeys((result.number for result in members), 0.0)
    for name, direction in study.objectives.items():
        values = [result.objectives[name] for result in members]
        least, most = min(values, default=0.0), max(values, default=0.0)
        for result, value in zip(members, values, strict=True):
            gain = log(value) if least > 0 else (value - least) / ((most - least) or 1.0)
            gained[result.number] += gain if direction is Direction.MAXIMIZE else -gain
    return max(members, key=lambda result: (gained[result.number], -result.number), default=None)


_Trials = Mapping[tuple[tuple[str, str], ...], TrialResult]


def _key(chosen: SetUp) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(chosen.items()))


def _by_set_up(results: Iterable[TrialResult]) -> _Trials:
    """Return the trial of each set-up: one with figures where there is one, then the first."""
    ordered = sorted(results, key=lambda result: (not _has_figures(result), result.number))
    found: dict[tuple[tuple[str, str], ...], TrialResult] = {}
    for result in ordered:
        found.setdefault(_key(set_up(result)), result)
    return found


def _has_figures(result: TrialResult | None) -> bool:
    return result is not None and bool(result.objectives) and not result.unlike


def _choices(trials: _Trials, bottom: SetUp, above: SetUp) -> list[tuple[str, str]]:
    """Return every choice of any trial that the start has not, those of the top first."""
    tried = dict.fromkeys(pair for key in trials for pair in key if bottom.get(pair[0]) != pair[1])
    return sorted(tried, key=lambda pair: (above.get(pair[0]) != pair[1], pair))


def _part(
    findings: Findings, key: str, value: str, start: TrialResult, top: TrialResult, trials: _Trials
) -> Part:
    bottom, above = set_up(start), set_up(top)
    alone = _changed(trials, bottom, key, value)
    is_in_top = above.get(key) == value
    without = _changed(trials, above, key, bottom[key]) if is_in_top and key in bottom else None
    return Part(
        key=key,
        choice=choice_text(key, value),
        alone=alone,
        alone_gains=gains(findings, alone, start) if alone is not None and _has_figures(alone) else {},
        is_in_top=is_in_top,
        without=without,
        top_gains=gains(findings, top, without) if without is not None and _has_figures(without) else {},
    )


def _changed(trials: _Trials, chosen: SetUp, key: str, value: str) -> TrialResult | None:
    """Return the trial that differs from `chosen` in one choice; None when there is none."""
    exact = trials.get(_key({**chosen, key: value}))
    if exact is not None:
        return exact
    # A key that exists only with another choice comes or goes with it.
    for candidate, result in trials.items():
        other = dict(candidate)
        if other.get(key) == value and set(other) != set(chosen) and differences(chosen, other) == (key,):
            return result
    return None


def _rungs(findings: Findings, start: TrialResult, top: TrialResult, trials: _Trials) -> tuple[Rung, ...]:
    """Return the longest climb through trials that were measured; of equally long ones that run first."""
    bottom, above = set_up(start), set_up(top)
    wanted = differences(bottom, above)
    between: dict[frozenset[str], TrialResult] = {}
    for candidate, result in trials.items():
        chosen = dict(candidate)
        taken = frozenset(key for key in wanted if chosen.get(key) == above.get(key))
        is_between = set(differences(bottom, chosen)) == taken and all(
            above.get(key) == value for key, value in chosen.items() if key not in bottom
        )
        if taken and is_between and _has_figures(result):
            between.setdefault(taken, result)
    between[frozenset(wanted)] = top
    # The best climb that ends at each set of choices, from small sets to large: its length, then the sum of
    # the trials' numbers, which is least for what ran first.
    climbs: dict[frozenset[str], tuple[int, int, tuple[frozenset[str], ...]]] = {frozenset(): (0, 0, ())}
    for taken in sorted(between, key=lambda keys: (len(keys), sorted(keys))):
        reach = [climb for below, climb in climbs.items() if below < taken]
        if reach:
            n_rungs, numbers, path = min(reach, key=lambda climb: (-climb[0], climb[1]))
            climbs[taken] = (n_rungs + 1, numbers + between[taken].number, (*path, taken))
    _, _, path = climbs.get(frozenset(wanted), (0, 0, ()))
    found, below, under = [], frozenset[str](), start
    for taken in path:
        result = between[taken]
        adds = tuple(choice_text(key, above.get(key, "")) for key in wanted if key in taken - below)
        found.append(
            Rung(
                adds=adds,
                result=result,
                gains=gains(findings, result, start),
                steps=gains(findings, result, under),
            )
        )
        below, under = taken, result
    return tuple(found)
