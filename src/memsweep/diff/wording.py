"""A review in words: the lines that the terminal shows, and the parts of them that a comment shows too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memsweep.diff.difference import Item, Section
from memsweep.diff.entry import SEAMS
from memsweep.diff.leaves import Change, Kind
from memsweep.diff.review import DEFAULT, Block, OptionFile, Review

SIGNS = {Kind.ADDED: "+", Kind.REMOVED: "-", Kind.CHANGED: "~", Kind.RETYPED: "!"}
"""What stands before a leaf."""

TITLES = {
    Section.COMPOSES: "",
    Section.SWITCH: "",
    Section.CONFIG: "",
    Section.TRAINING: "trains with",
    Section.SEARCH: "searches",
    Section.IN_FORCE: "was in force",
}
LEGEND = '+ only on the second side, - only on the first, ~ another value, ! another type (1 is not "1")'

_NAMED = 6
"""Presets that are named where a difference is told; of more the first of them and their number."""

_LONGEST = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a review.

    Attributes:
        text: What it says.
        depth: How far it is indented.
        sign: What stands before it; empty for none.
        is_title: Whether it is about the lines below it.
    """

    text: str
    depth: int = 0
    sign: str = ""
    is_title: bool = False


def lines(review: Review) -> Iterator[Line]:
    """Yield a review line by line."""
    yield Line(text=headline(review), is_title=True)
    for block in review.blocks:
        yield Line(text="")
        yield Line(text=names_text(block.names, review), is_title=True)
        yield from _items(block.items)
    for one in review.new:
        yield Line(text="")
        yield Line(text=new_text(one.name, one.size), is_title=True, sign="+")
        yield from _items(one.items)
    if review.gone:
        yield Line(text="")
        yield Line(text=f"gone: {', '.join(review.gone)}", is_title=True, sign="-")
    for option in review.options:
        yield Line(text="")
        yield Line(text=option_text(option, review), is_title=True, sign=SIGNS[option.kind])
        for change in option.changes:
            yield Line(text=change_text(change), depth=1, sign=SIGNS[change.kind])
    if review.notes:
        yield Line(text="")
        yield from (Line(text=text) for text in notes(review))


def headline(review: Review) -> str:
    """Return what there is to say in one line."""
    first, second = review.names
    n_presets = len(review.presets)
    typed = f", each with {' '.join(review.overrides)}" if review.overrides else ""
    n_different, n_broken, n_unknown = review.n_different, len(review.broken), len(review.unsearched)
    if n_presets == 1:
        said = [] if review.is_different else ["nothing differs"]
        said += ["what it searches is not known"] if n_unknown else []
        return f"{first} -> {second}{': ' * bool(said)}{', but '.join(said)}{typed}"
    parts = [f"{n_different or 'none'} of {n_presets} presets differ{'s' * (n_different < 2)}"]
    parts += [f"{n_broken} no longer compose{'s' * (n_broken == 1)}"] if n_broken else []
    parts += [f"{len(review.new)} new"] if review.new else []
    parts += [f"{len(review.gone)} gone"] if review.gone else []
    n_options = len(review.options)
    parts += [f"{n_options} option file{'s' * (n_options != 1)} changed"] if n_options else []
    parts += [f"what {n_unknown} search{'es' * (n_unknown == 1)} is not known"] if n_unknown else []
    return f"{first} -> {second}: {', '.join(parts)}{typed}"


def names_text(names: Sequence[str], review: Review) -> str:
    """Return which presets have something in common: `all 12 presets`, `2 presets: default, first_look`."""
    if len(review.presets) == 1:
        return names[0] if names[0] != DEFAULT else "the default"
    if len(names) == len(review.presets):
        return f"all {len(names)} presets"
    if len(names) == 1:
        return f"the {DEFAULT}" if names[0] == DEFAULT else f"experiment={names[0]}"
    shown = ", ".join(names[:_NAMED])
    return f"{len(names)} presets: {shown}{', ...' if len(names) > _NAMED else ''}"


def new_text(name: str, size: str) -> str:
    """Return what a new preset is called and searches."""
    return f"new: experiment={name}{f', searches {size}' if size else ''}"


def option_text(option: OptionFile, review: Review) -> str:
    """Return which file of conf/ it is, and who gets it."""
    word = {Kind.ADDED: " is new", Kind.REMOVED: " is gone"}.get(option.kind, "")
    known = f"chosen or searched by {names_text(option.used_by, review)}"
    if option.unknown:
        n_unknown, n_presets = len(option.unknown), len(review.presets)
        who = "it searches" if n_presets == 1 else f"{n_unknown} of {n_presets} presets search"
        unknown = f"what {who} is not known"
        return f"{option.label}{word} ({f'{known}; ' * bool(option.used_by)}{unknown})"
    if not option.used_by:
        return f"{option.label}{word} (no preset chooses or searches it)"
    return f"{option.label}{word}{f' ({known})' * (len(review.presets) > 1)}"


def change_text(change: Change, where: str = "") -> str:
    """Return a leaf with what became of it."""
    label = f"{SEAMS.get(where, where)} {change.path}" if where else change.path
    old, new = (short(change.text(text)) for text in (change.old, change.new))
    if change.kind is Kind.ADDED:
        return f"{label}: {new}"
    if change.kind is Kind.REMOVED:
        return f"{label}: was {old}"
    return f"{label}: {old} -> {new}{remark(change)}"


def remark(change: Change) -> str:
    """Return what the two values do not show: that types differ, or values that are not shown."""
    if change.types:
        return f" ({change.types})"
    if (
        change.old is not None
        and change.new is not None
        and change.text(change.old) == change.text(change.new)
    ):
        return " (another value)"
    return ""


def short(text: str) -> str:
    """Return a value's text, without the middle of a very long one."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 3 :]} ({len(text):,} characters)"


def notes(review: Review) -> Iterator[str]:
    """Yield what else is to be known: what could not be compared, and for what machine rules were judged."""
    for names, text in review.notes:
        yield f"{names_text(names, review)}: {text}" if names and len(review.presets) > 1 else text
    if review.machine and any(
        item.section is Section.SEARCH for block in review.blocks for item in block.items
    ):
        yield (
            f"rules are judged for this machine, {review.machine}; for another device: -- launch.device=cuda"
        )


def sections(block: Block) -> Iterator[tuple[Section, list[Item]]]:
    """Yield the items of a block section by section."""
    for section in Section:
        if items := [item for item in block.items if item.section is section]:
            yield section, items


def _items(items: Sequence[Item]) -> Iterator[Line]:
    for section, some in sections(Block(names=(), items=tuple(items))):
        depth = 1
        if TITLES[section]:
            yield Line(text=TITLES[section], depth=1)
            depth = 2
        for item in some:
            if item.change is None:
                yield Line(text=item.text, depth=depth)
                continue
            text = change_text(item.change, item.where)
            yield Line(text=text, depth=depth, sign=SIGNS[item.change.kind])
            for change in item.beneath:
                yield Line(text=change_text(change), depth=depth + 1, sign=SIGNS[change.kind])
