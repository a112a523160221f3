"""A recommendation, or why there is none, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memsweep.findings.axes import Axis
from memsweep.findings.find import Findings
from memsweep.findings.gains import comparison, gain, times_text
from memsweep.findings.recommend import Prefer, Recommendation, Wish, recommend
from memsweep.findings.shortfall import Saver, Shortfall
from memsweep.findings.words import (
    CHANGES,
    changes_text,
    constraint_text,
    counts_text,
    name_text,
    numbers_text,
    reason_text,
    remarks_text,
)
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import bytes_text, measure_text


def recommendation_lines(findings: Findings, found: Recommendation) -> Iterator[str]:
    """Yield why this trial: what it was chosen among, against the baseline, and why the second is second."""
    result = found.result
    yield f"Trial {result.number} of {findings.study.name}: {result.label}"
    yield f"  {_figures(findings, found, result)}"
    yield f"Why: {why(findings, found)}."
    if result.changes:
        yield f"It is not quite the same training: it {_lower(changes_text(result.changes))}."
    yield from _close_to_the_limit(findings, found)
    if findings.is_baseline(result):
        yield "It is the baseline: nothing else that meets the demands is better."
    elif compared := comparison(findings, result):
        yield f"{_capital(compared)}."
    else:
        yield "There is no measured baseline to compare it with."
    yield from second_lines(findings, found)
    yield from _other_ties(found)
    yield from _as_good_and_better(findings, found)
    yield from _wider(findings, found)
    yield from _unknown(found)
    if result.remarks:
        yield f"Before you believe its figures: {remarks_text(result)}."


def shortfall_lines(findings: Findings, found: Shortfall) -> Iterator[str]:
    """Yield what is nearest to the wish, and what is known to help."""
    demands = _demands(found.wish)
    meets = f"has {demands}" if demands else "meets the study's own demands"
    yield f"Of the set-ups of {findings.study.name} {_among(found.wish)} none {meets}."
    nearest = found.nearest
    if nearest is None:
        yield f"None was measured; how its trials ended: {counts_text(findings.counts()) or 'none finished'}."
    else:
        yield f"Nearest: trial {nearest.number}, {nearest.label}: {findings.sentence(nearest)}"
        by = [
            f"it misses {constraint_text(miss.demand)} by {measure_text(miss.demand.measure, miss.by)}"
            for miss in found.misses
        ]
        yield f"  {'; '.join(by) or reason_text(nearest, findings.study)}"
    if found.wider is not None:
        yield f"It is met by set-ups that change more: {_offered(findings, found, found.wider)}"
    if found.modest is not None:
        yield f"Of those that surely meet it, this changes least: {_offered(findings, found, found.modest)}"
    if found.savers and nearest is not None:
        yield f"Saved memory where it was tried, and trial {nearest.number} has not got it:"
        for saver in found.savers:
            yield f"  {_saver_text(saver)}"
    elif any(miss.demand.measure.endswith("_bytes") for miss in found.misses) and found.wider is None:
        yield "No choice that it has not got was measured to save memory: search a larger space (space=...)."


def _offered(findings: Findings, found: Shortfall, offer: Recommendation) -> str:
    """Return a trial that changes more than was accepted, and what to type for it."""
    result = offer.result
    unsure = "".join(f" {line}" for line in _close_to_the_limit(findings, replace(offer, wish=found.wish)))
    named = recommend(findings, replace(found.wish, changes=_changes_of(found.wish, result)))
    is_named = named is not None and named.result.number == result.number
    todo = (
        f"type {_accept(found.wish, result)}"
        if is_named
        else f"memsweep export takes its number, {result.number}"
    )
    return (
        f"trial {result.number}, {result.label}: {findings.sentence(result)}; "
        f"{_lower(changes_text(result.changes))}: {todo}.{unsure}"
    )


def why(findings: Findings, found: Recommendation) -> str:
    """Return what a trial was chosen among and by what, as half a sentence."""
    wish, among = found.wish, _among(found.wish)
    demands = f", with {_demands(wish)}" if _demands(wish) else ""
    of_those = f"of {found.n_left} set-ups {among}{demands}"
    reason = {
        Prefer.SPEED: f"the fastest {of_those}",
        Prefer.MEMORY: f"the smallest {of_those}",
        Prefer.KNEE: (
            f"the best compromise {of_those}: among those that no other beats in everything, it gives up "
            f"least of {_and([name_text(name) for name in findings.objectives])} together, each between its "
            "best and its worst there"
        ),
    }[wish.preference]
    if found.n_left == 1:
        reason = f"the only one of the set-ups {among}{demands}"
    if found.fastest is not None and found.speed is not None:
        best = measure_text(found.speed.name, found.speed.value(found.fastest))
        reason += f"; the best speed is that of trial {found.fastest.number}, {best}"
    return reason


def _demands(wish: Wish) -> str:
    """Return the demands of a wish in words; empty without any."""
    parts = []
    if wish.memory_bytes is not None:
        parts.append(f"peak memory at most {bytes_text(wish.memory_bytes)}")
    if wish.min_speed is not None:
        among = "" if wish.memory_bytes is None else " among what fits"
        parts.append(f"at least {wish.min_speed:g} of the best speed{among}")
    return _and(parts)


def _among(wish: Wish) -> str:
    if wish.changes is None:
        return "whatever they change"
    if not wish.changes:
        return "that train exactly what the baseline trains"
    return f"that change at most {_and([CHANGES.get(one, one) for one in sorted(wish.changes)])}"


def _close_to_the_limit(findings: Findings, found: Recommendation) -> Iterator[str]:
    limit, memory = found.wish.memory_bytes, found.memory
    if limit is not None and memory is not None:
        high = memory.bounds(findings, found.result)[1]
        if high > limit:
            yield (
                f"It fits by its figure, but not surely: {name_text(memory.name)} may be as much as "
                f"{measure_text(memory.name, high)}."
            )


def second_lines(findings: Findings, found: Recommendation) -> Iterator[str]:
    """Yield who is second and why, in up to two sentences; nothing else met the demands where nobody is."""
    second = found.runner_up
    if second is None:
        alone = "no other set-up meets the demands"
        yield f"Second: none, {alone if found.n_left == 1 else 'no other set-up beats it in anything'}."
        return
    against = _against(findings, found, second, found.result)
    if found.axis is None:
        reason = "together it gives up more"
    elif second.number in found.tied:
        reason = (
            f"in {_axis_text(found)} the two cannot be told apart (their 95 % intervals overlap), so take "
            "whichever suits you better"
        )
    else:
        both = [found.axis.interval(findings, result) for result in (found.result, second)]
        surely = ", by more than both may be off" if all(both) else ""
        reason = f"its {_axis_text(found)} is {_worse(found.axis)}{surely}"
    yield f"Second: trial {second.number}, {second.label}: {_figures(findings, found, second)}."
    yield f"  Against the first {against}: {reason}."


def _other_ties(found: Recommendation) -> Iterator[str]:
    """Yield who else cannot be told from the first in what decided, the second aside."""
    second = None if found.runner_up is None else found.runner_up.number
    others = [number for number in found.tied if number != second]
    if not others:
        return
    trials = numbers_text(others)
    axis, why_not = _axis_text(found), "their 95 % intervals overlap"
    if second in found.tied:
        yield f"In {axis} {trials} cannot be told from the first either ({why_not})."
    else:
        yield (
            f"Behind the second by {axis}, but so little known that {trials} cannot be told from the first: "
            f"{why_not}."
        )


def _as_good_and_better(findings: Findings, found: Recommendation) -> Iterator[str]:
    """Yield who is tied in what decided and surely better in the other of memory and speed."""
    other = found.speed if found.axis == found.memory else found.memory
    trials = [result for result in findings.results if result.number in found.tied]
    if found.axis is None or other is None or not trials:
        return
    sign = -1 if other.direction is Direction.MAXIMIZE else 1
    least = min(sign * bound for bound in other.bounds(findings, found.result))
    better = [one for one in trials if max(sign * bound for bound in other.bounds(findings, one)) < least]
    if better:
        best = min(better, key=found.axis.loss)
        less = gain(findings, best, found.result, other.name)
        has = f"has {times_text(less, other.name)}" if less else f"is better in {name_text(other.name)}"
        tied = f"trial {best.number}, {best.label}"
        yield f"Among those that cannot be told from it, {tied}, {has}: consider it."


def _unknown(found: Recommendation) -> Iterator[str]:
    """Yield what the study knows nothing of, and what it compared without having it as an objective."""
    for what, axis in (("memory", found.memory), ("speed", found.speed)):
        if axis is None:
            yield f"The study knows nothing of {what}: it is no objective, and its trials did not measure it."
        elif not axis.is_objective and axis == found.axis:
            name = _capital(name_text(axis.name))
            yield f"{name} is no objective of the study; its trials measured it beside them."


def _against(findings: Findings, found: Recommendation, one: TrialResult, other: TrialResult) -> str:
    both = ((name, gain(findings, one, other, name)) for name in _shown(findings, found))
    return _and([times_text(own, name) for name, own in both if own is not None])


def _wider(findings: Findings, found: Recommendation) -> Iterator[str]:
    """Yield what accepting set-ups that change more would give."""
    if found.wish.changes is None:
        return
    wider = wider_than(findings, found)
    if wider is None:
        kinds = {change for result in findings.measured if result.feasible for change in result.changes}
        if kinds - found.wish.changes:
            yield "Accepting set-ups that change more would give nothing better."
        return
    result = wider.result
    yield (
        f"Accepting set-ups that change {_and([CHANGES.get(one, one) for one in result.changes])}: trial "
        f"{result.number}, {result.label}: {_against(findings, found, result, found.result)}; "
        f"type {_accept(found.wish, result)}"
    )


def wider_than(findings: Findings, found: Recommendation) -> Recommendation | None:
    """Return what would be recommended if anything might change; None where that is the same trial."""
    if found.wish.changes is None:
        return None
    wider = recommend(findings, replace(found.wish, changes=None))
    if wider is None or found.wish.accepts(wider.result):
        return None
    return wider


def _accept(wish: Wish, result: TrialResult) -> str:
    return f"--changes {','.join(sorted(_changes_of(wish, result)))}"


def _changes_of(wish: Wish, result: TrialResult) -> frozenset[str]:
    """Return what must be accepted for a trial, beside what is."""
    return frozenset({*(wish.changes or ()), *result.changes})


def _saver_text(saver: Saver) -> str:
    pairs = "1 pair" if saver.n_pairs == 1 else f"the median of {saver.n_pairs} pairs"
    changes = "" if not saver.changes else f"; it {_lower(changes_text(saver.changes))}"
    evidence = f"{pairs} of trials that differ in it alone{changes}"
    together = "not measured" if saver.together is None else f"trial {saver.together}"
    return f"{saver.choice}: {saver.ratio:.2f} times the memory ({evidence}); with that set-up: {together}"


def _figures(findings: Findings, found: Recommendation, result: TrialResult) -> str:
    parts = []
    for name in _shown(findings, found):
        if name in result.objectives:
            parts.append(f"{name_text(name)} {findings.figure(result, name)}")
        elif name in result.medians:
            parts.append(f"{name_text(name)} {measure_text(name, result.medians[name])}")
    return ", ".join(parts)


def _shown(findings: Findings, found: Recommendation) -> tuple[str, ...]:
    """Return the names of the objectives, and of what the wish is about beside them."""
    beside = [axis.name for axis in (found.speed, found.memory) if axis is not None and not axis.is_objective]
    wanted = beside if found.wish.memory_bytes or found.wish.min_speed or found.wish.prefer else []
    return tuple(dict.fromkeys((*findings.objectives, *wanted)))


def _axis_text(found: Recommendation) -> str:
    return "" if found.axis is None else name_text(found.axis.name)


def _worse(axis: Axis) -> str:
    return "lower" if axis.direction is Direction.MAXIMIZE else "higher"


def _and(found: Sequence[object]) -> str:
    words = [str(one) for one in found]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
