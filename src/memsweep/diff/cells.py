"""What a sweep would try on one side and not on the other, and why."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from memsweep.diff.entry import TECHNIQUE, Entry
from memsweep.diff.leaves import json_text, shown

Cell = tuple[str, ...]
"""The value at every searched key, as JSON; empty where the key does not exist."""

SHOWN_REASONS = 12
"""Reasons that are listed for cells that appear, and as many for those that vanish."""

_NODE, _BASELINE = "technique.", "baseline"
_GOT = re.compile(r", got [^:]*")


class _Space:
    """The cells of one side, by the values of all keys that either side searches.

    Args:
        entry: The side.
        keys: Those keys.
    """

    def __init__(self, entry: Entry, keys: tuple[str, ...]) -> None:
        assert entry.space is not None
        self._entry, self._raw, self._keys = entry, entry.space, keys
        self.values: dict[str, set[str]] = {key: set() for key in keys}
        self.legal: set[Cell] = set()
        self.refused: dict[Cell, list[str]] = {}
        for at, broken in self._raw["cells"] or ():
            cell = self._cell(at)
            for key, value in zip(keys, cell, strict=True):
                self.values[key].add(value)
            if broken:
                self.refused[cell] = [_GOT.sub("", self._raw["sentences"][index]) for index in broken]
            else:
                self.legal.add(cell)

    def _cell(self, at: list[int | None]) -> Cell:
        found: dict[str, Any] = {}
        for parameter, index in zip(self._raw["parameters"], at, strict=True):
            if index is not None:
                found[parameter["key"]] = parameter["values"][index]
        searched = {parameter["key"] for parameter in self._raw["parameters"]}
        return tuple(self._value(key, found, searched) for key in self._keys)

    def _value(self, key: str, found: Mapping[str, Any], searched: set[str]) -> str:
        if key in found:
            return json_text(found[key])
        if key in searched:
            return ""
        if key in self._entry.choices:
            return json_text(self._entry.choices[key])
        if key.startswith(_NODE):
            # What a trial has that chooses another option than the composed one: that option's default.
            technique, _, name = key.removeprefix(_NODE).partition(".")
            group = f"{TECHNIQUE}{technique}"
            composed = self._entry.choices.get(group)
            option = found.get(group, composed)
            if option != composed:
                defaults = self._raw["defaults"]
                at = f"{group}/{option}/{name}"
                return json_text(defaults[at]) if at in defaults else ""
        return json_text(self._entry.leaves[key]) if key in self._entry.leaves else ""


def search_lines(old: Entry, new: Entry) -> tuple[str, ...]:
    """Return in words what is different in what two sides search; empty where nothing is.

    Args:
        old: The first side; its space is known.
        new: The second side; likewise.
    """
    assert old.space is not None
    assert new.space is not None
    lines = list(_axes(old.space, new.space))
    if old.space["cells"] is None or new.space["cells"] is None:
        lines += _rules(old.space, new.space)
    else:
        lines += _cells(old, new)
    before, after = size_text(old.space), size_text(new.space)
    return (f"{before} -> {after}", *lines) if before != after else tuple(lines)


def size_text(space: Mapping[str, Any]) -> str:
    """Return how much there is to try: `64 combinations, 48 of them legal`."""
    if space["n_cells"] is None:
        return "unboundedly many combinations"
    count = f"{space['n_cells']:,} combination{'s' if space['n_cells'] != 1 else ''}"
    return count if space["n_legal"] is None else f"{count}, {space['n_legal']:,} of them legal"


def _axes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = _by_key(old), _by_key(new)
    for key in sorted({*before, *after}):
        if key not in before:
            yield f"{key} is searched: {', '.join(after[key][0])}{_with(after[key][1])}"
        elif key not in after:
            yield f"{key} is not searched any more: {', '.join(before[key][0])}"
        else:
            (values, demands), (others, other_demands) = before[key], after[key]
            gone = [f"without {value}" for value in values if value not in others]
            come = [f"with {value}" for value in others if value not in values]
            if gone or come:
                yield f"{key} is searched {', '.join([*come, *gone])}"
            if set(demands) != set(other_demands):
                now, was = (_with(one) or " always" for one in (other_demands, demands))
                yield f"{key} is searched{now}; it was{was}"


def _by_key(space: Mapping[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """Return searched key to its values and to what it exists with, as text."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for parameter in space["parameters"]:
        values, demands = found.setdefault(parameter["key"], ([], []))
        if "values" in parameter:
            texts = [shown(value, parameter["key"]) for value in parameter["values"]]
        else:
            texts = [f"{parameter['low']} to {parameter['high']}{' (log)' if parameter['log'] else ''}"]
        values += [text for text in texts if text not in values]
        demands += parameter["only_with"]
    return found


def _with(demands: list[str]) -> str:
    return f" only with {' and '.join(sorted(demands))}" if demands else ""


def _rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is refused of a space that is too large to be listed."""
    before = [_GOT.sub("", text) for text in old["sentences"]] if old["cells"] is None else None
    after = [_GOT.sub("", text) for text in new["sentences"]] if new["cells"] is None else None
    if before is None or after is None:
        yield "one side is too large to be listed, so which combinations appear or vanish is not known"
        return
    yield from (f"refused now: {text}" for text in after if text not in before)
    yield from (f"not refused any more: {text}" for text in before if text not in after)


def _cells(old: Entry, new: Entry) -> Iterator[str]:
    assert old.space is not None
    assert new.space is not None
    searched = {one["key"] for space in (old.space, new.space) for one in space["parameters"]}
    keys = tuple(sorted(searched, key=lambda key: (not key.startswith(TECHNIQUE), key)))
    before, after = _Space(old, keys), _Space(new, keys)
    yield from _counted(
        "appear", after.legal - before.legal, before, keys, ("not refused any more", "is new")
    )
    yield from _counted(
        "vanish", before.legal - after.legal, after, keys, ("refused now", "is not searched any more")
    )


def _counted(
    verb: str, cells: set[Cell], other: _Space, keys: tuple[str, ...], words: tuple[str, str]
) -> Iterator[str]:
    """Yield how many cells appear or vanish, for each reason, with one of them."""
    counts: Counter[str] = Counter()
    examples: dict[str, Cell] = {}
    for cell in sorted(cells):
        if cell in other.refused:
            reason = f"{words[0]}: {'; '.join(other.refused[cell])}"
        else:
            strange = [
                f"{_pair(key, value)} {words[1]}"
                for key, value in zip(keys, cell, strict=True)
                if value not in other.values[key]
            ]
            reason = strange[0] if strange else "what exists together is searched otherwise"
        counts[reason] += 1
        examples.setdefault(reason, cell)
    for reason, count in counts.most_common(SHOWN_REASONS):
        example = " ".join(_pair(k, v) for k, v in zip(keys, examples[reason], strict=True) if _says(v))
        ends = {"appear": "appears", "vanish": "vanishes"}[verb] if count == 1 else verb
        yield f"{count:,} {ends}, {reason} (as {example or 'the baseline'})"
    if rest := sum(count for _, count in counts.most_common()[SHOWN_REASONS:]):
        yield f"{rest:,} {verb} for {len(counts) - SHOWN_REASONS} other reasons"


def _says(value: str) -> bool:
    return value not in ("", json_text(_BASELINE))


def _pair(key: str, value: str) -> str:
    name = key.removeprefix(TECHNIQUE).removeprefix(_NODE)
    return f"{name}={shown(json.loads(value), key)}" if value else f"no {name}"
