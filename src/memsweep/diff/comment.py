"""A review as one comment of a code review: Markdown that stays under the forge's limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memsweep.diff.difference import Item
from memsweep.diff.entry import SEAMS
from memsweep.diff.leaves import Change
from memsweep.diff.review import Block, Review
from memsweep.diff.wording import (
    LEGEND,
    SIGNS,
    TITLES,
    headline,
    names_text,
    new_text,
    notes,
    option_text,
    remark,
    sections,
    short,
)

LIMIT = 65_536
"""Characters of a comment.  Source: GitHub's answer to a longer one, "body is too long (maximum is 65536
characters)"; counted here in bytes, which are no fewer."""

MARKER = "<!-- memsweep diff -->"
"""By its first line a program finds the comment that it is to replace."""

_OPEN, _CLOSE = "<details open><summary>", "</details>"
_HEADER = ("| | setting | before | after |", "|:-:|---|---|---|")


def markdown(review: Review, command: str = "memsweep diff", limit: int = LIMIT) -> str:
    """Return a review as Markdown.

    Args:
        review: What to tell.
        command: Prints all of it, where something had to be cut.
        limit: Bytes that the text may have.
    """
    lines = list(_lines(review))
    room = limit - len(_cut_text(len(lines), len(lines), command).encode()) - len(_CLOSE) - 4
    kept: list[str] = []
    n_bytes, is_open = 0, False
    for line in lines:
        n_bytes += len(line.encode()) + 1
        if n_bytes > room:
            kept += ["", *([_CLOSE, ""] if is_open else [])]
            return "\n".join([*kept, _cut_text(len(lines) - len(kept), len(lines), command)]) + "\n"
        kept.append(line)
        is_open = line.startswith(_OPEN) or (is_open and line != _CLOSE)
    return "\n".join(kept) + "\n"


def _cut_text(n_cut: int, n_lines: int, command: str) -> str:
    return (
        f"**Cut here: {n_cut:,} of {n_lines:,} lines are left out, the limit of a comment.** All: `{command}`"
    )


def _lines(review: Review) -> Iterator[str]:
    yield MARKER
    yield "### What this does to the configurations"
    yield ""
    yield _plain(headline(review))
    for block in review.blocks:
        yield from _folded(names_text(block.names, review), _block(block))
    for one in review.new:
        yield from _folded(new_text(one.name, one.size), _block(Block(names=(one.name,), items=one.items)))
    if review.gone:
        yield from ("", f"**gone: {_plain(', '.join(review.gone))}**")
    for option in review.options:
        rows = [_row(change) for change in option.changes]
        yield from _folded(option_text(option, review), ["", *_HEADER, *rows] if rows else [])
    if said := list(notes(review)):
        yield ""
        yield from (f"- {_plain(text)}" for text in said)
    if review.is_different:
        yield from ("", f"<sub>{_plain(LEGEND)}</sub>")


def _folded(title: str, inner: Sequence[str]) -> Iterator[str]:
    yield ""
    if not inner:
        yield f"**{_plain(title)}**"
        return
    yield f"{_OPEN}<b>{_plain(title)}</b></summary>"
    yield from inner
    yield ""
    yield _CLOSE


def _block(block: Block) -> list[str]:
    found: list[str] = []
    for section, items in sections(block):
        title = TITLES[section]
        found += ["", f"**{title}**"] if title else []
        texts = [f"- {_plain(item.text)}" for item in items if item.change is None]
        rows = [row for item in items if item.change is not None for row in _rows(item)]
        found += ["", *texts] if texts else []
        found += ["", *_HEADER, *rows] if rows else []
    return found


def _rows(item: Item) -> Iterator[str]:
    assert item.change is not None
    yield _row(item.change, item.where)
    for change in item.beneath:
        yield _row(change, beneath=True)


def _row(change: Change, where: str = "", *, beneath: bool = False) -> str:
    label = f"{SEAMS.get(where, where)} " if where else "&nbsp;&nbsp;" if beneath else ""
    old, new = (
        _code(short(change.text(text))) if text is not None else "" for text in (change.old, change.new)
    )
    return f"| {SIGNS[change.kind]} | {label}{_code(change.path)} | {old} | {new}{_plain(remark(change))} |"


def _code(text: str) -> str:
    """Return a text as code within a table, whatever it holds."""
    fence = "`"
    while fence in text:
        fence += "`"
    space = " " if fence != "`" or not text else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """Return a text so that nothing in it means anything to Markdown or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    for sign in "\\`*_[]|~#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("@", "&#64;")  # nobody is called by a configuration
