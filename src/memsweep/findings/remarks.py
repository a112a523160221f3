"""What must be known before a table's figures are believed: the remarks of its trials, each told once.

Remarks of several trials that differ in their numbers alone become one, with the least and the most of each:
`threads waited for a core 55 to 73% of the time`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memsweep.record.trial import TrialResult

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One remark.

    Attributes:
        text: The remark; numbers that differ from trial to trial are ranges.
        numbers: The trials that it is about.
    """

    text: str
    numbers: tuple[int, ...]


def notes(results: Iterable[TrialResult]) -> tuple[Note, ...]:
    """Return the remarks of some trials, what is said of most of them first."""
    said: dict[str, dict[int, str]] = {}
    for result in results:
        for remark in result.remarks:
            said.setdefault(_NUMBER.sub("0", remark), {}).setdefault(result.number, remark)
    found = [Note(text=_joined(texts), numbers=tuple(sorted(texts))) for texts in said.values()]
    return tuple(sorted(found, key=lambda note: -len(note.numbers)))


def _joined(texts: Mapping[int, str]) -> str:
    """Return remarks that differ in their numbers as one."""
    remarks = list(texts.values())
    columns = zip(*map(_NUMBER.findall, remarks), strict=True)
    ranges = iter([_range(column) for column in columns])
    return _NUMBER.sub(lambda _: next(ranges), remarks[0])


def _range(numbers: Iterable[str]) -> str:
    ordered = sorted(set(numbers), key=lambda number: float(number.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
