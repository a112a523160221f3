"""The search space: its cells, which of them can be listed, and the overrides that each stands for.

A cell is one label for every parameter that exists in it, in the order of the parameters, and None for
those that do not.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memsweep.search.parameter import Condition, Fixed, Parameter
from memsweep.search.verdict import Request

Cell = tuple[str | None, ...]

GROUP = "technique/"
NODE = "technique."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional:
    """A fixed override that only some trials get.

    Attributes:
        override: The override.
        conditions: What must hold for it to be given, all of it.
    """

    override: Fixed
    conditions: tuple[Condition, ...]


Entry = Fixed | Conditional | Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is searched, and what every trial gets besides.

    Attributes:
        entries: Everything typed, in its order.
        techniques: Names of the techniques: `technique/<name>` and `technique.<name>.` are theirs.
        left_out: Keys that were to be searched or given, but exist in no cell, since what decides of them
            is not searched.
        parameters: The searched ones; those that always exist come first, others after what decides.
    """

    entries: tuple[Entry, ...]
    techniques: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = field(init=False)
    _n_cells: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        searched = [entry for entry in self.entries if isinstance(entry, Parameter)]
        ordered = [parameter for parameter in searched if not parameter.conditions]
        left = [parameter for parameter in searched if parameter.conditions]
        while left:
            placed = {parameter.name for parameter in ordered}
            ready = next((p for p in left if all(c.parent in placed for c in p.conditions)), None)
            assert ready is not None, "conditions in a circle, or on what is not searched, are refused before"
            ordered.append(ready)
            left.remove(ready)
        object.__setattr__(self, "parameters", tuple(ordered))
        object.__setattr__(self, "_n_cells", self._count())

    @property
    def fixed(self) -> tuple[str, ...]:
        """The overrides that are not searched, as typed."""
        return tuple(
            entry.text if isinstance(entry, Fixed) else entry.override.text
            for entry in self.entries
            if not isinstance(entry, Parameter)
        )

    @property
    def is_discrete(self) -> bool:
        """Whether every parameter lists its values."""
        return all(parameter.labels for parameter in self.parameters)

    def exists(self, entry: Parameter | Conditional, labels: Mapping[str, str | None]) -> bool:
        """Tell whether `entry` exists where the parameters that decide have their label in `labels`."""
        return all(condition.holds(labels.get(condition.parent)) for condition in entry.conditions)

    def family(self, parameter: Parameter) -> tuple[Parameter, ...]:
        """Return a parameter and all whose existence it decides, directly or through others, in order."""
        names = {parameter.name}
        for other in self.parameters:  # in order, so that one pass reaches all
            if any(condition.parent in names for condition in other.conditions):
                names.add(other.name)
        return tuple(other for other in self.parameters if other.name in names)

    def labels(self, cell: Cell) -> dict[str, str | None]:
        """Return parameter name to label; None for those that do not exist in `cell`."""
        return {parameter.name: label for parameter, label in zip(self.parameters, cell, strict=True)}

    def cell(self, labels: Mapping[str, str | None]) -> Cell:
        """Return the cell with `labels`; what is missing takes its first, what cannot exist has none."""
        found: dict[str, str | None] = {}
        for parameter in self.parameters:
            label = labels.get(parameter.name)
            exists = self.exists(parameter, found)
            found[parameter.name] = (parameter.first if label is None else label) if exists else None
        return tuple(found.values())

    def n_cells(self) -> float:
        """Return how many cells there are, legal or not; infinite where an interval is searched."""
        return self._n_cells

    def _count(self) -> float:
        """Count without listing: of large spaces there are more cells than can be."""
        if not self.is_discrete:
            return float("inf")
        counts: Counter[frozenset[str]] = Counter({frozenset(): 1})
        for parameter in self._by_family():
            counts = self._counted(parameter, counts)
        return counts.total()

    def _counted(self, parameter: Parameter, counts: Counter[frozenset[str]]) -> Counter[frozenset[str]]:
        """Return `counts` with the labels of one more parameter.

        Args:
            parameter: Comes after what decides of it.
            counts: Names of parameters still to come, which cannot exist any more, to the number of cells
                in which that is so.
        """
        children = [(p.name, c) for p in self.parameters for c in p.conditions if c.parent == parameter.name]
        lost = Counter(
            frozenset(name for name, condition in children if not condition.holds(label))
            for label in parameter.labels
        )
        found: Counter[frozenset[str]] = Counter()
        for gone, count in counts.items():
            if parameter.name in gone:
                found[(gone - {parameter.name}) | {name for name, _ in children}] += count
                continue
            for names, n_labels in lost.items():
                found[gone | names] += count * n_labels
        return found

    def _by_family(self) -> Iterable[Parameter]:
        """Yield the parameters in an order that has what decides close to what it decides."""
        placed: set[str] = set()
        left = list(self.parameters)
        while left:
            # The first whose parents are all there and that has some, else the first without any.
            ready = [p for p in left if all(c.parent in placed for c in p.conditions)]
            chosen = next((p for p in ready if p.conditions), ready[0])
            yield chosen
            placed.add(chosen.name)
            left.remove(chosen)

    def cells(self) -> Iterator[Cell]:
        """Yield every cell of a discrete space, the last parameter varying fastest."""
        yield from self._from(0, {})

    def _from(self, index: int, labels: dict[str, str | None]) -> Iterator[Cell]:
        if index == len(self.parameters):
            yield tuple(labels.values())
            return
        parameter = self.parameters[index]
        offered: tuple[str | None, ...] = parameter.labels if self.exists(parameter, labels) else (None,)
        for label in offered:
            yield from self._from(index + 1, {**labels, parameter.name: label})

    def random_cell(self, rng: random.Random) -> Cell:
        """Return a cell with every label drawn at random."""
        return self.cell({p.name: self.random_label(p, rng) for p in self.parameters})

    def random_label(self, parameter: Parameter, rng: random.Random) -> str:
        """Return one of a parameter's labels, or a point of its interval."""
        if parameter.labels:
            return rng.choice(parameter.labels)
        distribution: Any = parameter.distribution
        low, high = distribution.low, distribution.high
        if distribution.log:
            point = math.exp(rng.uniform(math.log(low), math.log(high)))
        else:
            point = rng.uniform(low, high)
        return parameter.label(round(point) if _is_int(low) else min(max(point, low), high))

    def drawn(self, cell: Cell) -> dict[str, Any]:
        """Return parameter name to what a sampler would have drawn for its label, of those it could have."""
        pairs = zip(self.parameters, cell, strict=True)
        drawn = {parameter.name: parameter.drawn(label) for parameter, label in pairs if label is not None}
        return {name: value for name, value in drawn.items() if value is not None}

    def overrides(self, cell: Cell) -> tuple[str, ...]:
        """Return what a trial of `cell` is given, in the order typed."""
        labels = self.labels(cell)
        texts = []
        for entry in self.entries:
            if isinstance(entry, Fixed):
                texts.append(entry.text)
            elif isinstance(entry, Conditional):
                texts.extend([entry.override.text] if self.exists(entry, labels) else [])
            elif (label := labels[entry.name]) is not None:
                texts.append(f"{entry.typed}={label}")
        return tuple(texts)

    def shown(self, cell: Cell) -> dict[str, str]:
        """Return searched key to label, of those that exist in `cell`."""
        pairs = zip(self.parameters, cell, strict=True)
        return {parameter.key: label for parameter, label in pairs if label is not None}

    def request(self, cell: Cell) -> Request:
        """Return what `cell` asks for, as the rules see it."""
        labels = self.labels(cell)
        options: dict[str, str] = {}
        parameters: dict[str, Any] = {}
        groups: dict[str, Any] = {}
        rest: list[str] = []
        for entry in self.entries:
            if isinstance(entry, Parameter):
                label = labels[entry.name]
                if label is None:
                    continue
                key, text, value = entry.key, f"{entry.typed}={label}", entry.value(label)
            else:
                if isinstance(entry, Conditional):
                    if not self.exists(entry, labels):
                        continue
                    entry = entry.override
                key, text, value = entry.key, entry.text, entry.value
            if technique_of(key, self.techniques) is None:
                groups[key] = value
                rest.append(text)
            elif key.startswith(GROUP):
                options[key.removeprefix(GROUP)] = str(value)
            else:
                parameters[key] = value
        return Request(options=options, parameters=parameters, groups=groups, rest=tuple(sorted(rest)))


def technique_of(key: str, techniques: frozenset[str]) -> str | None:
    """Return the technique that a key is about; None when it is about something else."""
    for prefix in (GROUP, NODE):
        if key.startswith(prefix):
            name = key.removeprefix(prefix).split("." if prefix == NODE else "@")[0]
            return name if name in techniques else None
    return None


def _is_int(number: float) -> bool:
    return isinstance(number, int)
