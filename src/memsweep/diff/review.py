"""The differences of all presets in one review: equal ones once, with the presets that have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memsweep.diff.difference import Item, Section
from memsweep.diff.leaves import Change, Kind, compared, flattened, json_text
from memsweep.diff.snapshot import Snapshot

DEFAULT = "default"
"""What the preset is called that chooses nothing: conf/config.yaml alone."""

_RULES = "rules"
_SAY_NOTHING = ("null", "[]", "{}", "false", '"any"')
_NO_OPTIONS = ("technique/", "hydra/", "experiment/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Differences that the same presets have.

    Attributes:
        names: The presets.
        items: What differs.
    """

    names: tuple[str, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPreset:
    """A preset that only the second side has.

    Attributes:
        name: Its name.
        items: What it makes different from the default.
        size: How much it searches, in words; empty where that is not known.
    """

    name: str
    items: tuple[Item, ...]
    size: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionFile:
    """A file of conf/ that says something else, so that whoever chooses it gets something else.

    Attributes:
        label: `technique/adapter/lora`.
        kind: Whether it is new, gone, or changed.
        changes: What it says otherwise.
        used_by: The presets that are known to choose or search it.
        unknown: Presets of which nobody knows what they search, so that they may search it too.
    """

    label: str
    kind: Kind
    changes: tuple[Change, ...] = ()
    used_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything that is to be told of two sides.

    Attributes:
        names: What the sides are called.
        presets: All that were compared.
        blocks: Differences, those of most presets first.
        new: Presets that only the second side has.
        gone: Names of those that only the first side has.
        options: Files of conf/ that say something else.
        notes: What could not be compared, each with the presets that it is about; no difference by itself.
        machine: What the rules were judged for, in words; empty where none were.
        overrides: What was typed for every preset, without secrets.
        broken: Presets that compose on the first side and not on the second.
        unsearched: Presets of which one side at least could not tell what it searches.
    """

    names: tuple[str, str]
    presets: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    new: tuple[NewPreset, ...] = ()
    gone: tuple[str, ...] = ()
    options: tuple[OptionFile, ...] = ()
    notes: tuple[tuple[tuple[str, ...], str], ...] = ()
    machine: str = ""
    overrides: tuple[str, ...] = field(default=())
    broken: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()

    @property
    def is_different(self) -> bool:
        """Whether there is any difference."""
        return bool(self.blocks or self.new or self.gone or self.options)

    @property
    def n_different(self) -> int:
        """How many of the presets of both sides differ."""
        return len({name for block in self.blocks for name in block.names})

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data, without secrets."""
        return {
            "sides": list(self.names),
            "overrides": list(self.overrides),
            "different": self.is_different,
            "presets": list(self.presets),
            "differences": [
                {"presets": list(block.names), "items": [item.to_mapping() for item in block.items]}
                for block in self.blocks
            ],
            "new_presets": [
                {"name": one.name, "size": one.size, "items": [item.to_mapping() for item in one.items]}
                for one in self.new
            ],
            "gone_presets": list(self.gone),
            "no_longer_compose": list(self.broken),
            "search_unknown": list(self.unsearched),
            "options": [
                {
                    "option": one.label,
                    "kind": one.kind.value,
                    "used_by": list(one.used_by),
                    "used_by_unknown": list(one.unknown),
                    "changes": [change.to_mapping() for change in one.changes],
                }
                for one in self.options
            ],
            "notes": [{"presets": list(names), "text": text} for names, text in self.notes],
            "machine": self.machine,
        }


def grouped(found: Mapping[str, Sequence[Item]]) -> tuple[Block, ...]:
    """Return what presets have in common: the differences of most presets first, each once.

    Args:
        found: Preset to its differences.
    """
    sections = list(Section)
    blocks: dict[tuple[str, ...], list[Item]] = {}
    for item, names in by_thing(found).items():
        blocks.setdefault(names, []).append(item)
    return tuple(
        Block(names=names, items=tuple(sorted(items, key=lambda item: sections.index(item.section))))
        for names, items in sorted(blocks.items(), key=lambda pair: -len(pair[0]))
    )


def by_thing(found: Mapping[str, Iterable[Any]]) -> dict[Any, tuple[str, ...]]:
    """Return each thing with all names that have it, in the order of first appearance."""
    things: dict[Any, list[str]] = {}
    for name, some in found.items():
        for thing in dict.fromkeys(some):
            things.setdefault(thing, []).append(name)
    return {thing: tuple(names) for thing, names in things.items()}


def changed_options(old: Snapshot, new: Snapshot, *, only_used: bool) -> tuple[OptionFile, ...]:
    """Return the files of conf/ that say something else.

    A group's option that some preset chooses is left out: there its leaves tell what comes of it.  One of a
    technique is always told, because those that search it show nothing of what it sets.

    Args:
        old: The first side.
        new: The second side.
        only_used: Only those that some preset chooses or searches.
    """
    if not old.options or not new.options:
        return ()
    used, chosen = _used(old, new, is_searched=True), _used(old, new, is_searched=False)
    unsure = unsearched(old, new)
    found = []
    sides = [{**_nodes(side, chosen), **side.facts} for side in (old, new)]
    for label in sorted({*sides[0], *sides[1]}):
        before, after = sides[0].get(label), sides[1].get(label)
        users = tuple(used.get(label, ()))
        unknown = tuple(name for name in unsure if name not in users)
        if before == after or (only_used and not users and not unknown):
            continue
        kind = Kind.ADDED if before is None else Kind.REMOVED if after is None else Kind.CHANGED
        changes = () if after is None else _changes({} if before is None else before, after)
        if kind is Kind.ADDED:
            changes = tuple(change for change in changes if change.new not in _SAY_NOTHING)
        if kind is not Kind.CHANGED or changes:
            found.append(OptionFile(label=label, kind=kind, changes=changes, used_by=users, unknown=unknown))
    return tuple(found)


def unsearched(*sides: Snapshot) -> tuple[str, ...]:
    """Return the presets of which some side could not tell what it searches."""
    names = [name for side in sides for name, one in side.entries.items() if one.unsearched]
    return tuple(dict.fromkeys(names))


def _nodes(side: Snapshot, used: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nodes of options that no preset chooses; those of techniques are told by their facts."""
    return {
        label: option["node"]
        for label, option in side.options.items()
        if not label.startswith(_NO_OPTIONS) and label not in used
    }


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return what differs; rules are a set, each of which is there or not."""
    rules = [
        set(side.get(_RULES) or ()) if isinstance(side.get(_RULES), Mapping) else set()
        for side in (before, after)
    ]
    values = [
        flattened({key: value for key, value in side.items() if key != _RULES}) for side in (before, after)
    ]
    gone = [Change(path="rule", old=json_text(text), new=None) for text in sorted(rules[0] - rules[1])]
    come = [Change(path="rule", old=None, new=json_text(text)) for text in sorted(rules[1] - rules[0])]
    return (*compared(values[0], values[1]), *gone, *come)


def _used(*sides: Snapshot, is_searched: bool) -> dict[str, dict[str, None]]:
    """Return `group/option` to the presets that choose it, or search it where that counts, on either side."""
    found: dict[str, dict[str, None]] = {}
    for side in sides:
        for name, entry in side.entries.items():
            for group, option in entry.choices.items():
                found.setdefault(f"{group.partition('@')[0]}/{option}", {})[name] = None
            for parameter in (entry.space or {}).get("parameters", ()) if is_searched else ():
                for value in parameter.get("values", ()):
                    found.setdefault(f"{parameter['key']}/{value}", {})[name] = None
    return found
