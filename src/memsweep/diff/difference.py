"""What is different between the two sides of one preset, as items that presets may have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memsweep.diff.cells import search_lines
from memsweep.diff.consequences import consequences
from memsweep.diff.entry import TECHNIQUE, Entry
from memsweep.diff.leaves import Change, compared, json_text
from memsweep.diff.read_back import in_force_changes
from memsweep.secret import masked_text


class Section(StrEnum):
    """What an item is about, in the order in which items are shown."""

    COMPOSES = "composes"
    SWITCH = "switch"
    CONFIG = "config"
    TRAINING = "training"
    SEARCH = "search"
    IN_FORCE = "in force"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One difference; equal items of several presets are shown once.

    Attributes:
        section: What it is about.
        change: What is different: a leaf, or the option of a group; None where `text` says all.
        where: The seam that a trial is given it at; empty where there is none.
        text: What is to be told in words; empty where `change` says all.
        beneath: What follows from a switched option.
    """

    section: Section
    change: Change | None = None
    where: str = ""
    text: str = ""
    beneath: tuple[Change, ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data, without secrets."""
        data: dict[str, Any] = {"section": self.section.value}
        if self.where:
            data["where"] = self.where
        if self.change is not None:
            data |= self.change.to_mapping()
        if self.text:
            data["text"] = self.text
        if self.beneath:
            data["beneath"] = [change.to_mapping() for change in self.beneath]
        return data


_OUTSIDE = "${oc."
"""How a text begins that is looked up outside of the config: in the environment, for one."""

_SPACE = ("hydra.sweeper.params", "hydra.sweeper.search_space")


def difference(
    old: Entry,
    new: Entry,
    names: tuple[str, str] = ("the first side", "the second side"),
    is_ignored: Callable[[str], bool] = lambda _: False,
) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """Return what is different between two sides of a preset, and what could not be compared.

    Args:
        old: The first side.
        new: The second side.
        names: What the sides are called.
        is_ignored: Told a path, whether it does not count.
    """
    if old.error or new.error:
        return _uncomposed(old, new, names)
    notes = list(_notes(old, new, names))
    changes = list(_leaves(old, new, is_ignored))
    items = []
    for group in sorted({*old.choices} & {*new.choices}):
        if old.choices[group] != new.choices[group] and not is_ignored(group.replace("/", ".")):
            own = f"{group.replace('/', '.')}.option"
            beneath = tuple(c for c in changes if old.owns(group, c.path) or new.owns(group, c.path))
            changes = [change for change in changes if change not in beneath]
            switched = Change(
                path=group, old=json_text(old.choices[group]), new=json_text(new.choices[group])
            )
            is_technique = group.startswith(TECHNIQUE)
            shown = tuple(c for c in beneath if not is_technique or c.path != own)
            items.append(Item(section=Section.SWITCH, change=switched, beneath=shown))
    items += [Item(section=Section.CONFIG, change=change) for change in changes]
    items += _training(old, new, is_ignored)
    if old.space is not None and new.space is not None:
        lines = (*search_lines(old, new), *consequences(old, new, is_ignored))
        items += [Item(section=Section.SEARCH, text=line) for line in lines]
    elif (old.space is None) is not (new.space is None) and (old.unsearched or new.unsearched):
        which = names[0] if old.space is None else names[1]
        why = masked_text(old.unsearched or new.unsearched)
        text = f"what is searched at {which} could not be had: {why}"
        items.append(Item(section=Section.SEARCH, text=text))
    if old.in_force is not None and new.in_force is not None:
        found = in_force_changes(old.in_force, new.in_force, (_asked(old), _asked(new)), is_ignored)
        items += [Item(section=Section.IN_FORCE, change=change) for change in found]
    return tuple(items), tuple(notes)


def _asked(entry: Entry) -> set[str] | None:
    """Return the names of the settings that a trial was given; None where they are not known."""
    if entry.training is None:
        return None
    return {path.rpartition(".")[2] for seam in entry.training.values() for path in seam}


def _uncomposed(old: Entry, new: Entry, names: tuple[str, str]) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    if old.error == new.error:
        return (), (f"composes on neither side: {masked_text(old.error)}",)
    texts = []
    for name, entry in zip(names, (old, new), strict=True):
        texts += [f"does not compose at {name}: {masked_text(entry.error)}"] if entry.error else []
    if old.error and new.error:
        return (), tuple(texts)
    return tuple(Item(section=Section.COMPOSES, text=text) for text in texts), ()


def _notes(old: Entry, new: Entry, names: tuple[str, str]) -> Iterator[str]:
    if old.unsearched and new.unsearched:
        where = [f" at {name}" for name in names]
        if old.unsearched == new.unsearched:
            where = [f" at {names[0]} and at {names[1]}"]
        for text, entry in zip(where, (old, new), strict=False):
            yield f"what it searches could not be had{text}: {masked_text(entry.unsearched)}"
    for name, entry in zip(names, (old, new), strict=True):
        if entry.untrained:
            yield f"what {name} trains with cannot be told: {masked_text(entry.untrained)}"


def _leaves(old: Entry, new: Entry, is_ignored: Callable[[str], bool]) -> Iterator[Change]:
    """Yield the leaves that differ, without those that are told as what is searched."""
    has_hydra = all(any(path.startswith("hydra.") for path in side.leaves) for side in (old, new))
    is_listed = old.space is not None and new.space is not None
    before, after = old.leaves, new.leaves
    if old.typed is not None and new.typed is not None:
        before, after = old.typed, new.typed
    for change in compared(before, after, is_ignored):
        if change.path.startswith("hydra.") and not has_hydra:
            continue  # what a trial was given holds nothing of Hydra's
        if is_listed and change.path.startswith(_SPACE):
            continue
        yield Change(
            path=change.path,
            old=_written(change.old, change.path, old.texts),
            new=_written(change.new, change.path, new.texts),
        )


def _written(text: str | None, path: str, texts: Mapping[str, str]) -> str | None:
    return json_text(texts[path]) if text is not None and path in texts else text


def _training(old: Entry, new: Entry, is_ignored: Callable[[str], bool]) -> Iterator[Item]:
    if old.training is None or new.training is None:
        return
    for seam in dict.fromkeys((*old.training, *new.training)):
        before, after = old.training.get(seam, {}), new.training.get(seam, {})
        for change in compared(before, after, lambda path, seam=seam: is_ignored(f"{seam}.{path}")):  # type: ignore
            yield Item(section=Section.TRAINING, where=seam, change=_unseen(change, old, new))


def _unseen(change: Change, old: Entry, new: Entry) -> Change:
    """Return a change whose values are shown as they are written, where they were looked up."""
    seen = [
        {json_text(side.leaves[path]): text for path, text in side.texts.items() if _OUTSIDE in text}
        for side in (old, new)
    ]
    before, after = (
        json_text(texts[value]) if value is not None and value in texts else value
        for texts, value in zip(seen, (change.old, change.new), strict=True)
    )
    return Change(path=change.path, old=before, new=after)
