"""The lengths of some data as text: a histogram of block characters, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memsweep.lengths.packing import STRATEGIES
from memsweep.lengths.table import Lengths

BAR_COLUMNS = 44
_FULL = "\N{FULL BLOCK}"
_PARTS = (
    "",
    "\N{LEFT ONE EIGHTH BLOCK}",
    "\N{LEFT ONE QUARTER BLOCK}",
    "\N{LEFT THREE EIGHTHS BLOCK}",
    "\N{LEFT HALF BLOCK}",
    "\N{LEFT FIVE EIGHTHS BLOCK}",
    "\N{LEFT THREE QUARTERS BLOCK}",
    "\N{LEFT SEVEN EIGHTHS BLOCK}",
)


def text(lengths: Lengths) -> str:
    """Return all that is known, for a terminal."""
    sections = [
        _head(lengths),
        _parts(lengths),
        _histogram(lengths),
        _limits(lengths),
        _padding(lengths),
        _packing(lengths),
        "\n".join(f"Note: {remark}." for remark in lengths.remarks),
    ]
    return "\n\n".join(section for section in sections if section)


def bar(share: float, columns: int = BAR_COLUMNS) -> str:
    """Return a bar that fills this share of the columns, to an eighth; a sliver for what is there at all."""
    eighths = max(round(share * columns * 8), 1 if share > 0 else 0)
    return _FULL * (eighths // 8) + _PARTS[eighths % 8]


def share_text(share: float) -> str:
    """Return a share in percent, so that neither little looks like nothing nor nearly all like all."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %"


def _head(lengths: Lengths) -> str:
    skipped = f", {lengths.n_unusable:,} rows without text left out" if lengths.n_unusable else ""
    limit = (
        f"max_length={lengths.max_length:,} in force keeps {lengths.tokens_kept:,} of them "
        f"({share_text(lengths.tokens_kept / lengths.tokens)})"
        if lengths.max_length is not None
        else "no limit in force"
    )
    return (
        f"{lengths.data} for {lengths.trainer}, tokenized as for {lengths.model}: "
        f"{lengths.n_examples:,} examples{skipped}, {lengths.tokens:,} tokens; {limit}"
    )


def _parts(lengths: Lengths) -> str:
    percents = list(lengths.parts[0].percentiles)
    head = ("tokens of", "shortest", *(f"{percent} %" for percent in percents), "longest", "mean", "all")
    rows = [
        (
            part.name,
            f"{part.shortest:,}",
            *(f"{part.percentiles[percent]:,}" for percent in percents),
            f"{part.longest:,}",
            f"{part.tokens / part.n_sequences:,.0f}",
            f"{part.tokens:,}",
        )
        for part in lengths.parts
    ]
    return _table(head, rows)


def _histogram(lengths: Lengths) -> str:
    bins = lengths.distribution
    total = sum(one.n_sequences for one in bins)
    most = max(one.n_sequences for one in bins)
    ranges = [f"{one.low:,}-{one.high:,}" for one in bins]
    width = max(map(len, ranges))
    lines = [
        f"{span:>{width}}  {bar(one.n_sequences / most):<{BAR_COLUMNS}}  {one.n_sequences:,} "
        f"({share_text(one.n_sequences / total)})"
        for span, one in zip(ranges, bins, strict=True)
    ]
    return "\n".join([f"{'tokens':>{width}}  sequences", *lines])


def _limits(lengths: Lengths) -> str:
    head = ("max_length", "tokens kept", "lost", "whole", "cut", "left out", "")
    rows = [
        (
            f"{limit.max_length:,}",
            f"{limit.tokens_kept:,}",
            share_text(1 - limit.kept_share),
            f"{limit.n_whole:,}",
            f"{limit.n_cut:,}",
            f"{limit.n_left_out:,}",
            ", ".join(limit.why),
        )
        for limit in lengths.limits
    ]
    return "What a limit would leave of the examples:\n" + _table(head, rows)


def _padding(lengths: Lengths) -> str:
    if not lengths.padding:
        return ""
    head = ("batch", "in random order", "grouped by length")
    rows = [
        (f"{one.batch:,}", share_text(one.random_share), share_text(one.grouped_share))
        for one in lengths.padding
    ]
    under = f" under max_length={lengths.max_length:,}" if lengths.max_length is not None else ""
    return f"Padding as a share of a batch{under}:\n" + _table(head, rows)


def _packing(lengths: Lengths) -> str:
    if not lengths.packing:
        return ""
    head = ["max_length", *(f"{name} {what}" for name in STRATEGIES for what in ("full", "lost"))]
    rows: dict[int, list[str]] = {}
    for one in lengths.packing:
        cells = rows.setdefault(one.max_length, [f"{one.max_length:,}"])
        cells += [share_text(one.filled_share), share_text(1 - one.kept_share)]
    n_packed = lengths.packing[0].n_examples
    of = "" if n_packed == lengths.n_examples else f" (from {n_packed:,} of the examples)"
    return f"How full packed rows are, and the tokens that packing loses{of}:\n" + _table(head, rows.values())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows in columns: words to the left, all else to the right, under a head."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(head))]
    return "\n".join(line.rstrip() for line in _lines(cells, widths))


def _lines(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for row in cells:
        aligned = [
            value.ljust(width) if _is_word(index, cells) else value.rjust(width)
            for index, (value, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(aligned)


def _is_word(index: int, cells: Sequence[Sequence[str]]) -> bool:
    return any(row[index][:1].isalpha() for row in cells[1:])
