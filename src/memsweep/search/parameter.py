"""What a space is made of: overrides that stay as they are, and parameters that are searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from memsweep.search.grammar import read_value
from memsweep.search.match import Match


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """An override that is not searched.

    Attributes:
        key: What it is about, with its package, without `+`: `technique/adapter`, `db@source`.
        text: As typed.
        value: What Hydra reads in it; None for a deletion.
    """

    key: str
    text: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A demand on another parameter.

    Attributes:
        parent: Name of that parameter.
        among: Its labels that meet the demand.
        match: What decides of labels that the parameter does not list, as of an interval's; None: none of
            them meets it.
    """

    parent: str
    among: frozenset[str] = frozenset()
    match: Match | None = None

    def holds(self, label: str | None) -> bool:
        """Tell whether a label of the parent meets it; None, a parent that does not exist, never does."""
        if label is None:
            return False
        return label in self.among or (self.match is not None and self.match.holds(read_value(label)))

    @property
    def text(self) -> str:
        """The demand in words."""
        if self.among:
            return f"{self.parent}={' or '.join(sorted(self.among))}"
        return f"{self.parent}=nothing" if self.match is None else self.match.text(self.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A key whose value is searched.

    Attributes:
        name: What Optuna calls it: the key, unless several parameters share one.
        key: What it is about, as in `Fixed`.
        typed: The key with its `+`, as a trial gets it.
        distribution: What the sampler draws from.
        labels: Every value as override text, in the order typed; empty for an interval.
        values: What Hydra reads in each label.
        conditions: What must hold for it to exist, all of it; empty if it always does.
    """

    name: str
    key: str
    typed: str
    distribution: BaseDistribution
    labels: tuple[str, ...]
    values: tuple[Any, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def first(self) -> str:
        """The label that stands for it where nothing has been chosen yet."""
        return self.labels[0] if self.labels else str(self.distribution.low)  # type: ignore[attr-defined]

    def label(self, drawn: Any) -> str:
        """Return the override text of what the sampler has drawn."""
        if isinstance(self.distribution, CategoricalDistribution):
            return str(drawn)
        if not self.labels:
            return repr(drawn)
        nearest = min(range(len(self.values)), key=lambda index: abs(self.values[index] - drawn))
        return self.labels[nearest]

    def drawn(self, label: str) -> Any:
        """Return what the sampler would have drawn for `label`; None if it never would."""
        return drawn(self.distribution, label)

    def value(self, label: str) -> Any:
        """Return what Hydra reads in `label`."""
        return self.values[self.labels.index(label)] if label in self.labels else read_value(label)


def drawn(distribution: BaseDistribution, label: str) -> Any:
    """Return what is drawn from a distribution where the label is this one; None if it never is."""
    if isinstance(distribution, CategoricalDistribution):
        return label if label in distribution.choices else None
    value = read_value(label)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if distribution._contains(value) else None
