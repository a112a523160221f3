"""The legal cells that a model chooses among: all of a small space, a growing part of a large one.

A large space cannot be listed, and judging a cell takes about 0.3 ms.  So a part of it is drawn at first, and
with every question come cells drawn at random and every cell that differs from a member of the front in one
label: whatever the model finds good can be followed step by step.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, IntDistribution

from memsweep.search.legal import LegalCells
from memsweep.search.parameter import Parameter
from memsweep.search.space import Cell, Space

_AT_FIRST = 1500
_EACH_TIME = 50
_MOST = 3_000
"""Cells that are offered at most: more would take longer to judge, and the model longer to rank."""

_NEAR = 0.1
"""How far a neighbour in an interval is, as a share of the interval (a standard deviation)."""

_POINTS = 4


class LegalCandidates:
    """Offers the legal cells of a space that were not tried, none twice.

    Attributes:
        distributions: Parameter to what it may be.

    Args:
        space: The space.
        legal: Its legal cells.
        rng: Draws cells where they cannot be listed.
        tried: Cells that are not offered; its owner adds to it.
    """

    def __init__(self, space: Space, legal: LegalCells, rng: random.Random, tried: Collection[Cell]) -> None:
        self._space, self._legal, self._rng, self._tried = space, legal, rng, tried
        self.distributions: Mapping[str, BaseDistribution] = {
            parameter.name: parameter.distribution for parameter in space.parameters
        }
        self._cells: dict[Cell, str] = {}
        self._rows: list[dict[str, Any]] = []
        self._asked_for: set[str] = set()
        self._looked_around: set[Cell] = set()

    def asked_for(self, requested_hash: str) -> None:
        """Offer nothing that asks for the same, while there is anything else."""
        self._asked_for.add(requested_hash)

    def offered(self, near: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], Sequence[int]]:
        """Return cells, and the indices of those that may be tried.

        What asks for the same as another trial is offered only when nothing else is left: it costs nothing,
        and tells nothing.
        """
        listed = self._legal.listed()
        if listed is None:
            self._grow([self._cell(row) for row in near])
        elif not self._cells:
            for cell in listed:
                self._add(cell)
        untried = [index for index, cell in enumerate(self._cells) if cell not in self._tried]
        hashes = list(self._cells.values())
        new = [index for index in untried if hashes[index] not in self._asked_for]
        return self._rows, new or untried

    def _grow(self, near: Sequence[Cell]) -> None:
        for cell in near:
            if cell not in self._looked_around:
                self._looked_around.add(cell)
                for neighbour in self._around(cell):
                    self._add(neighbour)
        n_wanted = _EACH_TIME if self._cells else _AT_FIRST
        if len(self._cells) - len(self._tried) < _MOST:
            for cell in self._legal.drawn(n_wanted):
                self._add(cell)

    def _add(self, cell: Cell) -> None:
        if cell in self._cells:
            return
        verdict = self._legal.verdict(cell)
        if verdict.violations:
            return
        self._cells[cell] = verdict.requested_hash
        self._rows.append(self._space.drawn(cell))

    def _cell(self, row: Mapping[str, Any]) -> Cell:
        return self._space.cell(
            {p.name: p.label(row[p.name]) for p in self._space.parameters if p.name in row}
        )

    def _around(self, cell: Cell) -> Iterator[Cell]:
        """Yield the cells that differ from `cell` in one label."""
        labels = self._space.labels(cell)
        for parameter in self._space.parameters:
            label = labels[parameter.name]
            if label is not None:
                for other in parameter.labels or self._points(parameter, label):
                    if other != label:
                        yield self._space.cell({**labels, parameter.name: other})

    def _points(self, parameter: Parameter, label: str) -> list[str]:
        """Return some points of an interval near the one that `label` stands for."""
        distribution: Any = parameter.distribution
        low, high, at = float(distribution.low), float(distribution.high), float(parameter.drawn(label))
        found = []
        for _ in range(_POINTS):
            step = self._rng.gauss(0.0, _NEAR)
            moved = at * (high / low) ** step if distribution.log else at + (high - low) * step
            moved = min(max(moved, low), high)
            is_whole = isinstance(distribution, IntDistribution)
            found.append(parameter.label(round(moved) if is_whole else moved))
        return found
