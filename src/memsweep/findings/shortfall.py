"""What a study has when nothing in it meets a wish: the nearest miss, and what is known to save memory.

Only measured facts: how much a choice saved where two trials differ in it alone, never what it would do
together with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from statistics import median

from memsweep.findings.axes import Axis, memory_axis
from memsweep.findings.find import Findings
from memsweep.findings.recommend import Recommendation, Wish, offers, recommend
from memsweep.findings.setup import choice_text, set_up
from memsweep.record.study import Constraint
from memsweep.record.trial import TrialResult

MOST_SAVERS = 4
"""Choices that are named, those that saved most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One demand that a trial does not meet.

    Attributes:
        demand: What was demanded.
        by: How far away it is, in the measure's unit.
    """

    demand: Constraint
    by: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Saver:
    """A choice that was measured to save memory.

    Attributes:
        choice: The choice: `checkpointing=full`.
        ratio: Memory with it as a multiple of memory without, the median over the pairs.
        n_pairs: Pairs of trials that differ in this choice alone.
        changes: What it changes beside speed and memory.
        together: Number of the trial that has it with the rest of the nearest miss; None when there is none.
    """

    choice: str
    ratio: float
    n_pairs: int
    changes: tuple[str, ...]
    together: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why nothing meets a wish, and what is nearest.

    Attributes:
        wish: The wish.
        nearest: The measured trial that misses by the least share of what is demanded; None when none was
            measured among those that change no more than is accepted.
        misses: What it misses; empty only when it is not on offer for another reason.
        savers: Choices that it has not, and that saved memory elsewhere; empty when memory is not missed.
        wider: What would be recommended if set-ups that change anything were accepted; None when nothing.
        modest: The same if it had to meet the wish surely, and to change as little as can be; None when
            nothing, or when it is the same trial.
    """

    wish: Wish
    nearest: TrialResult | None
    misses: tuple[Miss, ...]
    savers: tuple[Saver, ...]
    wider: Recommendation | None
    modest: Recommendation | None


def shortfall(findings: Findings, wish: Wish) -> Shortfall:
    """Return what is nearest to a wish that nothing meets.

    Args:
        findings: What the study found.
        wish: What `recommend` finds nothing for.
    """
    memory = memory_axis(findings)
    candidates = offers(findings, wish) or [
        result for result in findings.measured if wish.accepts(result) and not result.feasible
    ]
    missed = {result.number: _misses(findings, wish, memory, result) for result in candidates}

    def distance(result: TrialResult) -> tuple[int, float, int]:
        shares = (miss.by / (abs(miss.demand.bound or 0.0) or 1.0) for miss in missed[result.number])
        return len(result.objections), sum(shares), result.number

    nearest = min(candidates, key=distance, default=None)
    misses = missed[nearest.number] if nearest is not None else ()
    is_about_memory = memory is not None and any(miss.demand.measure == memory.name for miss in misses)
    wider = None if wish.changes is None else recommend(findings, replace(wish, changes=None))
    return Shortfall(
        wish=wish,
        nearest=nearest,
        misses=misses,
        savers=_savers(findings, memory, nearest) if is_about_memory and memory and nearest else (),
        wider=wider,
        modest=None if wider is None else _modest(findings, wish, wider),
    )


def _modest(findings: Findings, wish: Wish, wider: Recommendation) -> Recommendation | None:
    """Return what changes least of all that surely meets a wish; of as much, what is recommended first."""
    found: list[Recommendation] = []
    for kind in findings.kinds():
        if found and len(kind) > len(found[0].result.changes):
            break
        accepted = frozenset({*(wish.changes or ()), *kind})
        offer = recommend(findings, replace(wish, changes=accepted, surely=True))
        if offer is not None:
            found.append(offer)
    numbers = [offer.result.number for offer in found]
    return None if not found or wider.result.number in numbers else _best_of(found)


def _best_of(offers: Sequence[Recommendation]) -> Recommendation:
    """Return the best by what decides among them; the first where nothing single does."""

    def loss(offer: Recommendation) -> float:
        return 0.0 if offer.axis is None else offer.axis.loss(offer.result)

    return min(offers, key=loss)


def _misses(findings: Findings, wish: Wish, memory: Axis | None, result: TrialResult) -> tuple[Miss, ...]:
    found = []
    if wish.memory_bytes is not None and memory is not None:
        demand = Constraint(measure=memory.name, upper=True, bound=wish.memory_bytes)
        found.append(Miss(demand=demand, by=memory.value(result) - wish.memory_bytes))
    for name, violation in result.constraints.items():
        own = findings.study.constraints.get(name)
        if own is not None:
            found.append(Miss(demand=own, by=violation))
    return tuple(miss for miss in found if miss.by > 0)


def _savers(findings: Findings, memory: Axis, nearest: TrialResult) -> tuple[Saver, ...]:
    """Return the choices that `nearest` has not and that saved memory, beyond noise in the median pair."""
    has = set_up(nearest)
    ratios: dict[str, list[tuple[float, bool, frozenset[str]]]] = {}
    together: dict[str, int] = {}
    for with_it, without, key in _pairs(findings):
        value = set_up(with_it)[key]
        if has.get(key) != value and set_up(without).get(key) == has.get(key):
            low, high = memory.bounds(findings, without)[0], memory.bounds(findings, with_it)[1]
            changes = frozenset(with_it.changes) - frozenset(without.changes)
            ratio = memory.value(with_it) / memory.value(without)
            ratios.setdefault(choice_text(key, value), []).append((ratio, high < low, changes))
            if without.number == nearest.number:
                together[choice_text(key, value)] = with_it.number
    found = [
        Saver(
            choice=choice,
            ratio=median(ratio for ratio, _, _ in pairs),
            n_pairs=len(pairs),
            changes=tuple(sorted(frozenset[str]().union(*(changes for _, _, changes in pairs)))),
            together=together.get(choice),
        )
        for choice, pairs in ratios.items()
        if 2 * sum(is_sure for _, is_sure, _ in pairs) > len(pairs)
    ]
    return tuple(sorted(found, key=lambda saver: (saver.ratio, saver.choice))[:MOST_SAVERS])


def _pairs(findings: Findings) -> Iterator[tuple[TrialResult, TrialResult, str]]:
    """Yield each two measured trials that differ in one choice, either way round, with its key."""
    alike: dict[tuple[str, frozenset[tuple[str, str]]], list[TrialResult]] = {}
    for result in findings.measured:
        chosen = set_up(result)
        for key in chosen if not result.unlike else ():
            rest = frozenset((other, value) for other, value in chosen.items() if other != key)
            alike.setdefault((key, rest), []).append(result)
    for (key, _), trials in alike.items():
        for one, other in permutations(trials, 2):
            yield one, other, key
