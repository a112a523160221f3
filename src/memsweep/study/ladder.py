"""The trials that explain a front: every option alone, and the best combination built up step by step.

A search for the front measures few of these.  But whoever is to believe a combination asks what each part
of it brings: alone, and on top of the others.  A ladder answers that with a rung a technique.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from memsweep.findings.ladder import best
from memsweep.record.asked import Origin
from memsweep.record.trial import TrialResult
from memsweep.search.ask import Asker
from memsweep.search.proposal import Proposal
from memsweep.search.space import Cell, Space
from memsweep.study.book import Book

IsLegal = Callable[[Cell], bool]


class Ladder:
    """The last trials of a study: they explain what it has found.

    Args:
        asker: Knows which cells are legal and were tried.
        book: The trials so far.
        baseline: Below the first rung.
        n_reserved: How many trials at the end may be the ladder's; the search has what it does not need.
    """

    def __init__(self, asker: Asker, book: Book, baseline: Cell, n_reserved: int) -> None:
        self._asker, self._book = asker, book
        self._baseline, self._n_reserved = baseline, n_reserved

    def next(self, n_left: int) -> Proposal | None:
        """Return the next rung; None while the search goes on, or when nothing is left to explain.

        Args:
            n_left: Trials that are still to begin.
        """
        if n_left > self._n_reserved:
            return None
        cells = self._missing()
        if not cells or len(cells) < n_left:
            return None
        return replace(self._asker.of_cell(cells[0]), origin=Origin.LADDER)

    def _missing(self) -> list[Cell]:
        """Return the cells of the ladder that were not tried, in the order in which they are to be.

        First what the best combination is built up from, then options alone.  Where that combination changes
        what is trained, options alone that do not come before it: a report answers first what is to be had
        without such a change, and the search may have tried little of it.
        """
        space, is_legal = self._asker.space, self._asker.is_legal
        singles, top = list(alone(space, self._baseline, is_legal)), self._top()
        if top is None:
            return [cell for cell in singles if self._is_new(cell)]
        singles.sort(key=lambda cell: sum(a != b for a, b in zip(cell, top, strict=True)))
        first = [cell for cell in singles if not self._changes(cell)] if self._changes(top) else []
        wanted = dict.fromkeys((*first, *rungs(space, self._baseline, top, is_legal), *singles))
        return [cell for cell in wanted if self._is_new(cell)]

    def _changes(self, cell: Cell) -> bool:
        """Tell whether a cell changes more than speed and memory."""
        return bool(self._asker.legal.verdict(cell).changes)

    def _is_new(self, cell: Cell) -> bool:
        if self._asker.is_tried(cell):
            return False
        return self._book.same_request(self._asker.legal.verdict(cell).requested_hash) is None

    def _top(self) -> Cell | None:
        """Return the cell of the member of the front that the report climbs to; None without any."""
        top = best(self._book.front, self._book.study)
        return None if top is None else self._cell(top)

    def _cell(self, result: TrialResult) -> Cell:
        space = self._asker.space
        return space.cell({p.name: result.parameters.get(p.key) for p in space.parameters})


def alone(space: Space, baseline: Cell, is_legal: IsLegal) -> Iterator[Cell]:
    """Yield the legal cells that differ from `baseline` in one choice, in the order of the space.

    Args:
        space: The space; parameters that are searched over an interval are left out.
        baseline: What every rung is compared with.
        is_legal: Whether a cell may run.
    """
    labels = space.labels(baseline)
    for parameter in space.parameters:
        for label in parameter.labels:
            if labels[parameter.name] is not None and label != labels[parameter.name]:
                cell = space.cell({**labels, parameter.name: label})
                if is_legal(cell):
                    yield cell


def rungs(space: Space, baseline: Cell, top: Cell, is_legal: IsLegal) -> list[Cell]:
    """Return the cells between `baseline` and `top`, each with one choice of `top` more than the one before.

    Choices are taken in the order of the space; one that is not legal yet waits for those it needs, and what
    is legal only together is one rung.

    Args:
        space: The space.
        baseline: Below the first rung.
        top: The combination to build up; not among what is returned.
        is_legal: Whether a cell may run.
    """
    below, above = space.labels(baseline), space.labels(top)
    missing = {name: label for name, label in above.items() if label != below[name]}
    found: list[Cell] = []
    labels: Mapping[str, str | None] = below
    while len(missing) > 1:
        step = _next(space, labels, missing, is_legal)
        if step is None:
            break
        names, cell = step
        labels = space.labels(cell)
        missing = {name: label for name, label in missing.items() if name not in names}
        if missing and cell != top:
            found.append(cell)
    return found


def _next(
    space: Space, labels: Mapping[str, str | None], missing: Mapping[str, str | None], is_legal: IsLegal
) -> tuple[set[str], Cell] | None:
    """Return what to add, and the cell with it: one choice where that is legal, else two together."""
    singles = [{name} for name in missing]
    pairs = [{one, other} for one in missing for other in missing if one < other]
    for names in (*singles, *pairs):
        cell = space.cell({**labels, **{name: missing[name] for name in names}})
        reached = space.labels(cell)
        if all(reached[name] == missing[name] for name in names) and is_legal(cell):
            return names, cell
    return None
