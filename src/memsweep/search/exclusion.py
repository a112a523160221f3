"""Combinations that are ruled out by `hydra.sweeper.exclude`: judged like the rules of an app."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memsweep.search.match import Match
from memsweep.search.verdict import ABSENT, Judge, Request, Verdict

Lookup = Callable[[str, Request], Any]
"""Key and request to the value that a trial has there; ABSENT where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """One combination that is not to be tried.

    Attributes:
        pairs: Key to what it must be; a cell that meets every one is excluded.
        because: Why; empty where nobody said.
    """

    pairs: Mapping[str, Match]
    because: str = ""

    @property
    def text(self) -> str:
        """The sentence of a cell that is excluded: one for all such cells, so that they can be counted."""
        pairs = " with ".join(match.text(key) for key, match in self.pairs.items())
        return f"{pairs} is excluded" + (f": {self.because}" if self.because else "")

    def excludes(self, request: Request, lookup: Lookup) -> bool:
        """Tell whether a request is excluded; a key without a value meets nothing."""
        for key, match in self.pairs.items():
            value = lookup(key, request)
            if value is ABSENT or not match.holds(value):
                return False
        return True


def excluding(judge: Judge, exclusions: Sequence[Exclusion], lookup: Lookup) -> Judge:
    """Return a judge that knows the exclusions too.

    Args:
        judge: The app's.
        exclusions: What is excluded besides.
        lookup: Knows the values of keys that a request does not name.
    """
    if not exclusions:
        return judge

    def judged(request: Request) -> Verdict:
        verdict = judge(request)
        found = tuple(one.text for one in exclusions if one.excludes(request, lookup))
        return replace(verdict, violations=(*verdict.violations, *found)) if found else verdict

    return judged
