"""A part of the walk that meets every option, refusal, rule and equality once, in some trainer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def sampled(cases: Sequence[tuple[Hashable, str]]) -> set[int]:
    """Return the places of the cases to keep: one of each subject, the trainers as evenly as may be.

    Args:
        cases: Each a subject and the trainer in which it is tried.
    """
    places_of: dict[Hashable, list[int]] = {}
    for number, (subject, _) in enumerate(cases):
        places_of.setdefault(subject, []).append(number)
    kept: set[int] = set()
    used: Counter[str] = Counter()
    for places in places_of.values():
        chosen = min(places, key=lambda number: used[cases[number][1]])
        used[cases[chosen][1]] += 1
        kept.add(chosen)
    return kept
