"""The search space: its cells, which of them can be listed, and the overrides that each stands for.

A cell is one label for every parameter that exists in it, in the order of the parameters, and None for
those that do not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memsweep.search.parameter import Fixed, Parameter
from memsweep.search.verdict import Request

Cell = tuple[str | None, ...]

GROUP = "technique/"
NODE = "technique."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional:
    """A fixed override that only some trials get.

    Attributes:
        override: The override.
        parent: Name of the parameter that decides.
        among: Labels of `parent` with which it exists.
    """

    override: Fixed
    parent: str
    among: frozenset[str]


Entry = Fixed | Conditional | Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is searched, and what every trial gets besides.

    Attributes:
        entries: Everything typed, in its order.
        techniques: Names of the techniques: `technique/<name>` and `technique.<name>.` are theirs.
        parameters: The searched ones; a parameter comes after its parent.
    """

    entries: tuple[Entry, ...]
    techniques: frozenset[str] = frozenset()
    parameters: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        searched = [entry for entry in self.entries if isinstance(entry, Parameter)]
        roots = [parameter for parameter in searched if parameter.parent is None]
        others = [parameter for parameter in searched if parameter.parent is not None]
        object.__setattr__(self, "parameters", (*roots, *others))

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

    def exists(self, parameter: Parameter, labels: Mapping[str, str | None]) -> bool:
        """Tell whether `parameter` exists where its parent has the label in `labels`."""
        return parameter.parent is None or labels.get(parameter.parent) in parameter.among

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
        if not self.is_discrete:
            return float("inf")
        count = 1
        for parameter in self.parameters:
            if parameter.parent is None:
                count *= sum(self._below(parameter, label) for label in parameter.labels)
        return count

    def _below(self, parent: Parameter, label: str) -> int:
        count = 1
        for child in self.parameters:
            if child.parent == parent.name and label in child.among:
                count *= len(child.labels)
        return count

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
        low: float = parameter.distribution.low  # type: ignore[attr-defined]
        high: float = parameter.distribution.high  # type: ignore[attr-defined]
        return parameter.label(rng.randint(int(low), int(high)) if _is_int(low) else rng.uniform(low, high))

    def overrides(self, cell: Cell) -> tuple[str, ...]:
        """Return what a trial of `cell` is given, in the order typed."""
        labels = self.labels(cell)
        texts = []
        for entry in self.entries:
            if isinstance(entry, Fixed):
                texts.append(entry.text)
            elif isinstance(entry, Conditional):
                texts.extend([entry.override.text] if labels[entry.parent] in entry.among else [])
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
                    if labels[entry.parent] not in entry.among:
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
