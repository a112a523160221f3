"""Every measured set-up as a line across rows: a row for each thing that was chosen, then one an objective.

What parallel coordinates are drawn from, whoever draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from memsweep.findings.find import Findings
from memsweep.findings.setup import number, set_up
from memsweep.findings.words import name_text
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text

MOST_OPTIONS = 12
"""More numbers than this lie along a scale, more words have no row: nobody could read their labels."""

SPREAD, MOST_SPREAD = 0.35, 0.07
"""Lines through one option lie apart, so that many can be seen: by this share of the way to the next, at
most by that of the row."""

MANY_TIMES = 100
"""A scale is logarithmic from this ratio of its ends on."""

Value = int | float | str
_OPTION, _PARAMETER = "technique/", "technique."


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is crossed by the lines of all trials that have it.

    Attributes:
        title: What is chosen, or measured.
        values: Trial number to its value; a number where all of them are.
        places: Trial number to where its line crosses, from 0 to 1; the better objective is 1.
        ticks: Places with their labels.
        gap: How far apart neighbouring options are; 0 along a scale.
    """

    title: str
    values: Mapping[int, Value]
    places: Mapping[int, float]
    ticks: tuple[tuple[float, str], ...]
    gap: float = 0.0

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers."""
        return not any(isinstance(value, str) for value in self.values.values())

    def spread(self, trial: int, share: float) -> float | None:
        """Return where a trial's line crosses, apart from others through the same option.

        Args:
            trial: Its number.
            share: Where it stands among all trials, from 0 to 1.
        """
        place = self.places.get(trial)
        return None if place is None else place + (share - 0.5) * min(SPREAD * self.gap, MOST_SPREAD)


def choices(findings: Findings) -> tuple[Row, ...]:
    """Return the rows of what measured trials chose differently, techniques first; () with fewer than two."""
    trials = findings.measured
    if len(trials) < 2:
        return ()
    columns = _columns(trials)
    start = (findings.baseline or trials[0]).number
    names = _titles(columns)
    rows = (_choice(names[key], column, column.get(start)) for key, column in columns.items())
    return tuple(row for row in rows if row is not None)


def objectives(findings: Findings) -> tuple[Row, ...]:
    """Return the rows of what trials measured."""
    return tuple(_objective(findings, name) for name in findings.objectives if findings.measured)


def options(findings: Findings, trials: Sequence[TrialResult]) -> dict[str, list[str]]:
    """Return the keys in which some trials differ, each with its options, the start's first.

    An option stands with its parameters, as in `memsweep.findings.setup`.
    """
    start = set_up(findings.baseline or trials[0]) if trials else {}
    found: dict[str, set[str]] = {}
    for result in trials:
        for key, option in set_up(result).items():
            found.setdefault(key, set()).add(option)
    return {
        key: _ordered(labels, start.get(key))
        for key, labels in found.items()
        if 1 < len(labels) <= MOST_OPTIONS
    }


def _columns(trials: Sequence[TrialResult]) -> dict[str, dict[int, str]]:
    """Return what was chosen, key by key: techniques with their parameters behind them, then all else."""
    found: dict[str, dict[int, str]] = {}
    for result in trials:
        searched = {key.removeprefix(_OPTION): label for key, label in result.parameters.items()}
        for key, label in {**result.choice, **searched}.items():
            found.setdefault(key, {})[result.number] = label
    return {key: found[key] for key in _in_order(found)}


def _in_order(keys: Iterable[str]) -> Iterator[str]:
    known = list(keys)
    own = {key: key.removeprefix(_PARAMETER).split(".")[0] for key in known if key.startswith(_PARAMETER)}
    for key in known:
        if own.get(key) in known:
            continue  # follows its technique
        yield key
        yield from (parameter for parameter, technique in own.items() if technique == key)


def _titles(keys: Iterable[str]) -> dict[str, str]:
    """Return key to what it is called: as short as tells it from the others."""
    known = list(keys)
    short = {
        key: key.removeprefix(_PARAMETER) if key.startswith(_PARAMETER) else key.rsplit(".", 1)[-1]
        for key in known
    }
    names = list(short.values())
    return {key: name if names.count(name) == 1 else key for key, name in short.items()}


def _choice(title: str, column: Mapping[int, str], start: str | None) -> Row | None:
    """Return the row of one thing that was chosen; None where all chose alike, or it has too many words."""
    labels = _ordered(set(column.values()), start)
    read = {label: number(label) for label in labels}
    is_numeric = not any(isinstance(value, str) for value in read.values())
    values = {trial: read[label] if is_numeric else label for trial, label in column.items()}
    if len(labels) < 2 or (len(labels) > MOST_OPTIONS and not is_numeric):
        return None
    if len(labels) > MOST_OPTIONS:
        return _scale(title, {trial: float(value) for trial, value in values.items()}, values)
    gap = 1 / (len(labels) - 1)
    at = {label: index * gap for index, label in enumerate(labels)}
    places = {trial: at[label] for trial, label in column.items()}
    return Row(
        title=title,
        values=values,
        places=places,
        ticks=tuple((at[label], label) for label in labels),
        gap=gap,
    )


def _scale(title: str, numbers: Mapping[int, float], values: Mapping[int, Value]) -> Row:
    low, high = min(numbers.values()), max(numbers.values())
    is_ratio = low > 0 and high / low >= MANY_TIMES
    places = {trial: _share(value, low, high, is_ratio=is_ratio) for trial, value in numbers.items()}
    return Row(title=title, values=values, places=places, ticks=((0.0, f"{low:,.4g}"), (1.0, f"{high:,.4g}")))


def _objective(findings: Findings, name: str) -> Row:
    """Return the row of an objective, on a logarithmic scale where all values are above zero."""
    values = {result.number: result.objectives[name] for result in findings.measured}
    ends = (min(values.values()), max(values.values()))
    worst, best = ends if findings.study.objectives[name] is Direction.MAXIMIZE else ends[::-1]
    places = {trial: _share(value, worst, best, is_ratio=ends[0] > 0) for trial, value in values.items()}
    at = ((0.0, worst), (1.0, best)) if worst != best else ((0.5, best),)
    ticks = tuple((place, measure_text(name, value)) for place, value in at)
    return Row(title=name_text(name), values=values, places=places, ticks=ticks)


def _share(value: float, first: float, last: float, *, is_ratio: bool) -> float:
    """Return how far `value` lies on the way from `first` to `last`."""
    if first == last:
        return 0.5
    if is_ratio:
        return log(value / first) / log(last / first)
    return (value - first) / (last - first)


def _ordered(labels: Iterable[str], start: str | None) -> list[str]:
    """Return numbers by their size; with words among them the start's first, then numbers, then words."""
    known = list(labels)
    if any(isinstance(number(label), str) for label in known):
        return sorted(known, key=lambda label: (label != start, *_size(label)))
    return sorted(known, key=_size)


def _size(label: str) -> tuple[bool, float, str]:
    value = number(label)
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), label)
