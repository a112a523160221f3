"""Which set-ups are compared: those that change no more than a reader accepts, each time with their front.

A front is fair only among set-ups that train the same thing.  So every set of changes that can be accepted
has a front, and ties, of its own; the first accepts none.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from memsweep.findings.find import Findings, front_of
from memsweep.findings.intervals import ties
from memsweep.record.trial import TrialResult

MOST_WORDS = 6
"""More kinds of change than this are accepted all together or not at all: each doubles the views."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The set-ups that change no more than is accepted.

    Attributes:
        accepted: What they may change beside speed and memory, sorted; empty for nothing.
        candidates: The feasible ones, by number.
        front: Those that no other of them dominates, best in the first objective first.
        tied: Number of a member to those of the other members that it cannot be told from.
        contenders: Number of a candidate off the front to those of the members that it cannot be told from.
    """

    accepted: tuple[str, ...]
    candidates: tuple[TrialResult, ...]
    front: tuple[TrialResult, ...]
    tied: Mapping[int, tuple[int, ...]]
    contenders: Mapping[int, tuple[int, ...]]

    @property
    def key(self) -> str:
        """What is accepted as one text."""
        return " ".join(self.accepted)


def views(findings: Findings) -> tuple[View, ...]:
    """Return a view for every set of changes that can be accepted, the smallest first."""
    words = change_words(findings)
    sizes = range(len(words) + 1) if len(words) <= MOST_WORDS else (0, len(words))
    return tuple(
        view(findings, accepted) for size in sizes for accepted in itertools.combinations(words, size)
    )


def change_words(findings: Findings) -> tuple[str, ...]:
    """Return everything that some trial's set-up changes, sorted."""
    return tuple(sorted({change for result in findings.results for change in result.changes}))


def view(findings: Findings, accepted: tuple[str, ...]) -> View:
    """Return the view that accepts these changes."""
    candidates = tuple(
        result for result in findings.measured if result.feasible and set(result.changes) <= set(accepted)
    )
    front = front_of(candidates, findings.study)
    members = {result.number for result in front}
    others = [result for result in candidates if result.number not in members]
    return View(
        accepted=accepted,
        candidates=candidates,
        front=front,
        tied=ties(front, front, findings.objectives),
        contenders=ties(others, front, findings.objectives),
    )


def first_view(shown: tuple[View, ...]) -> View:
    """Return what is shown unasked: the set-ups that train the same, or else the first that has any."""
    return next((one for one in shown if one.front), shown[0])
