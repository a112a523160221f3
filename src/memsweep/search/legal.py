"""Which cells of a space may run: asked before anything is launched, without composing a config.

A small space is listed.  A large one cannot be, and almost none of its cells may be legal: of 57 thousand
million combinations of all techniques, none of 3,000 drawn at random was.  So an illegal cell is mended:
what it asks for is added to a legal one, piece by piece, as far as the rules allow.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator

from memsweep.search.space import Cell, Space
from memsweep.search.verdict import Judge, Verdict

LISTED = 2_000
"""Cells, legal or not, that are listed when a study starts: about 0.3 ms each."""

LISTED_AT_NEED = 20_000
"""Cells that are listed when nothing else finds a cell that has not been tried."""

COUNTED = 50_000
"""Cells that a dry run lists."""

_NEIGHBOURS = 100
_TRIED, _SHARE = 50, 0.1  # a walk begins when of so many cells fewer than this share are legal
_GOT = re.compile(r", got [^:]*")


class LegalCells:
    """The cells of a space that break no rule.

    Args:
        space: The space.
        judge: Knows the rules.
        rng: Decides the order in which cells are tried where none is better.
    """

    def __init__(self, space: Space, judge: Judge, rng: random.Random) -> None:
        self.judge = judge
        self._space, self._rng = space, rng
        self._listed: list[Cell] | None = None
        self._safe: Cell | None = None

    def verdict(self, cell: Cell) -> Verdict:
        """Return what the app makes of a cell."""
        return self.judge(self._space.request(cell))

    def listed(self, limit: int = LISTED) -> list[Cell] | None:
        """Return every legal cell, in the space's order; None if there are more than `limit` to judge."""
        if self._listed is None and self._space.n_cells() <= limit:
            self._listed = [cell for cell in self._space.cells() if not self.verdict(cell).violations]
        return self._listed

    def refusals_alone(self) -> list[str]:
        """Return what a cell breaks that has one label of its own and the first of all others."""
        first = self._space.labels(self._space.cell({}))
        found: dict[str, None] = {}
        for parameter in self._space.parameters:
            for label in () if parameter.conditions else parameter.labels:
                verdict = self.verdict(self._space.cell({**first, parameter.name: label}))
                found.update(dict.fromkeys(_GOT.sub("", sentence) for sentence in verdict.violations))
        return list(found)

    def refusals(self) -> Counter[str]:
        """Return rule to the number of cells that break it; a cell may break several."""
        counts: Counter[str] = Counter()
        for cell in self._space.cells():
            # The same rule for other circumstances is the same rule.
            counts.update({_GOT.sub("", sentence) for sentence in self.verdict(cell).violations})
        return counts

    def ordered(self) -> Iterator[Cell]:
        """Yield the legal cells in the order of the space, without listing them first."""
        for cell in self._space.cells() if self._listed is None else self._listed:
            if self._listed is not None or not self.verdict(cell).violations:
                yield cell

    def near(self, wanted: Cell, visited: Collection[Cell]) -> Cell | None:
        """Return a legal cell that is not in `visited`, as like `wanted` as can be; None if none is found."""
        listed = self.listed()
        if listed is None:
            found = self._mended_near(wanted, visited)
            if found is not None:
                return found
            listed = self.listed(LISTED_AT_NEED) or []
        left = [cell for cell in listed if cell not in visited]
        self._rng.shuffle(left)
        return min(left, key=lambda cell: _distance(cell, wanted), default=None)

    def mended(self, wanted: Cell) -> Cell | None:
        """Return a legal cell with as much of `wanted` as the rules allow; None if no cell is legal."""
        current = self._safe_cell()
        if current is None:
            return None
        labels, asked = self._space.labels(current), self._space.labels(wanted)
        roots = [parameter for parameter in self._space.parameters if not parameter.conditions]
        # Twice: what one asks for may be legal only once another's has been added.
        for parameter in [*self._rng.sample(roots, len(roots)), *roots]:
            family = {one.name for one in self._space.family(parameter)}
            if all(labels[name] == asked[name] for name in family):
                continue
            candidate = self._space.cell({**labels, **{name: asked[name] for name in family}})
            if not self.verdict(candidate).violations:
                labels = self._space.labels(candidate)
        return self._space.cell(labels)

    def drawn(self, n_cells: int) -> Iterator[Cell]:
        """Yield legal cells drawn at random, up to `n_cells`, of which some may be the same.

        Where hardly a cell drawn at random is legal, they are a random walk over legal cells.
        """
        n_legal = 0
        for n_drawn in range(n_cells):
            if n_drawn >= _TRIED and n_legal < _SHARE * n_drawn:
                yield from self._walked(n_cells - n_drawn)
                return
            cell = self._space.random_cell(self._rng)
            if not self.verdict(cell).violations:
                n_legal += 1
                yield cell

    def _walked(self, n_cells: int) -> Iterator[Cell]:
        cell = self.mended(self._space.random_cell(self._rng))
        if cell is None:
            return
        for _ in range(n_cells):
            labels = self._space.labels(cell)
            for parameter in self._rng.sample(self._space.parameters, min(2, len(self._space.parameters))):
                labels[parameter.name] = self._space.random_label(parameter, self._rng)
            step = self._space.cell(labels)
            if not self.verdict(step).violations:
                cell = step
                yield cell

    def _mended_near(self, wanted: Cell, visited: Collection[Cell]) -> Cell | None:
        found = self.mended(wanted)
        for _ in range(_NEIGHBOURS):
            if found is None or found not in visited:
                return found
            labels = self._space.labels(found)
            for parameter in self._rng.sample(self._space.parameters, min(2, len(self._space.parameters))):
                labels[parameter.name] = self._space.random_label(parameter, self._rng)
            found = self.mended(self._space.cell(labels))
        return None

    def _safe_cell(self) -> Cell | None:
        """Return a legal cell to start from: that of first labels where it is legal, else one near it."""
        if self._safe is None:
            self._safe = next(
                (cell for cell in self._near_first() if not self.verdict(cell).violations), None
            )
        return self._safe

    def _near_first(self) -> Iterator[Cell]:
        first = self._space.labels(self._space.cell({}))
        changes: list[dict[str, str | None]] = [{}]
        changes += [{p.name: label} for p in self._space.parameters for label in p.labels]
        yield from (self._space.cell({**first, **change}) for change in changes)
        for one in changes:
            yield from (self._space.cell({**first, **one, **other}) for other in changes)
        # What is ruled out may lie in an interval, of which there is no next label.
        yield from (self._space.random_cell(self._rng) for _ in range(_TRIED))


def _distance(one: Cell, other: Cell) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))
