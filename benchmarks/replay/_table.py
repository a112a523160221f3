"""A space of which every cell was measured, as a thing to search again."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from hydra.core.override_parser.overrides_parser import OverridesParser
from numpy.typing import NDArray

from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.pareto.hypervolume import hypervolume, losses_of
from memsweep.search.space import GROUP, Space
from memsweep.search.verdict import Request, Verdict

OBJECTIVES = ("tokens_per_second", "peak_memory_bytes")
MAXIMIZE = (True, False)
SECONDS, SET_UP = "seconds", "set_up"


@dataclass(frozen=True, slots=True)
class Table:
    """A space and what each of its legal cells measured.

    Attributes:
        name: Of the table.
        levels: Technique to options.
        cells: One option a technique, in the order of `levels`; those not in it are illegal.
        values: (n_cells, 2) tokens per second, peak memory in bytes.
        seconds: (n_cells,) that a trial took.
        limit: Bytes; cells that need more run out of memory.
        set_up: (n_cells,) equal for cells that have one set-up in force, which is measured once; None where
            all differ.
    """

    name: str
    levels: Mapping[str, Sequence[str]]
    cells: Sequence[tuple[str, ...]]
    values: NDArray[np.float64]
    seconds: NDArray[np.float64]
    limit: float
    set_up: NDArray[np.int64] | None = None
    index: Mapping[tuple[str, ...], int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {cell: index for index, cell in enumerate(self.cells)})

    @property
    def fits(self) -> NDArray[np.bool_]:
        """(n_cells,) the cell does not run out of memory."""
        return np.asarray(self.values[:, 1] <= self.limit)

    @property
    def losses(self) -> NDArray[np.float64]:
        """(n_cells, 2) logarithms, negated where larger is better."""
        return losses_of(self.values, MAXIMIZE, (True, True))

    def with_limit(self, share: float) -> Table:
        """Return the table with a limit that `share` of its cells exceed."""
        limit = float(np.quantile(self.values[:, 1], 1 - share))
        return replace(self, name=f"{self.name}, {share:.0%} too large", limit=limit)

    def hypervolumes(self, tried: Sequence[int]) -> NDArray[np.float64]:
        """Return the share of the whole space's hypervolume that the first 1, 2, ... cells tried have.

        The corner is the slowest and the largest cell that fits.
        """
        losses, fits = self.losses, self.fits
        corner = losses[fits].max(axis=0) + 1e-9
        whole = hypervolume(losses[fits], corner)
        found = []
        for n_tried in range(1, len(tried) + 1):
            rows = [row for row in tried[:n_tried] if row >= 0 and fits[row]]
            if n_tried > 1 and (not rows or rows[-1] != tried[n_tried - 1]):
                found.append(found[-1])  # what ran out of memory adds nothing
            else:
                found.append(hypervolume(losses[rows], corner) / whole)
        return np.array(found)

    def space(self) -> Space:
        """Return the space that a study of it would search."""
        parser = OverridesParser.create()
        texts = [f"{GROUP}{name}={','.join(options)}" for name, options in self.levels.items()]
        entries = tuple(searched(parser.parse_override(text), 0) for text in texts)
        return Space(entries=entries, techniques=frozenset(self.levels))

    def judge(self, request: Request) -> Verdict:
        """Return a verdict: a cell that is not in the table is illegal."""
        cell = tuple(request.options[name] for name in self.levels)
        if cell not in self.index:
            return Verdict(choice=request.options, violations=("not a legal cell",))
        return Verdict(choice=request.options, requested_hash=" ".join(cell))


def read(path: Path) -> Table:
    """Return a table from a CSV file; lines that begin with # say where it is from."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    names = [name for name in rows[0] if name not in (*OBJECTIVES, SECONDS, SET_UP)]
    levels = {name: list(dict.fromkeys(row[name] for row in rows)) for name in names}
    return Table(
        path.stem,
        levels,
        [tuple(row[name] for name in names) for row in rows],
        np.array([[float(row[name]) for name in OBJECTIVES] for row in rows]),
        np.array([float(row[SECONDS]) for row in rows]),
        float("inf"),
        np.array([int(row[SET_UP]) for row in rows]),
    )
