"""The lengths of some data as a picture: how many sequences are how long, and what limits would lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memsweep.errors import ConfigError
from memsweep.lengths.table import Lengths

FORMS = (".svg", ".png")
INK, FAINT, BARS, LOST = "#202124", "#9aa0a6", "#7aa0d4", "#b3541e"


def require_form(path: Path) -> None:
    """Raise if a picture of that name could not be written.

    Raises:
        ConfigError: It says what could.
    """
    if path.suffix.lower() not in FORMS:
        raise ConfigError(f"a picture is {' or '.join(FORMS)}, got {path}: type --picture {path.stem}.svg")
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent} for the picture {path.name}")


def write_picture(lengths: Lengths, path: Path) -> None:
    """Write the picture; the same table gives the same bytes.

    Args:
        lengths: What to draw.
        path: Ends in .svg or .png.

    Raises:
        ConfigError: If it does not, or its folder is not there.
    """
    import matplotlib
    from matplotlib.figure import Figure

    require_form(path)
    with matplotlib.rc_context({"svg.hashsalt": "memsweep", "font.size": 10, "axes.edgecolor": FAINT}):
        figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
        axes = figure.add_subplot()
        _bars(axes, lengths)
        _lost(axes.twinx(), lengths)
        axes.set_title(f"{lengths.data} for {lengths.trainer}, {lengths.n_examples:,} examples", loc="left")
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        figure.savefig(path, metadata=metadata)


def _bars(axes: Any, lengths: Lengths) -> None:
    bins = lengths.distribution
    width = bins[0].high + 1 - bins[0].low
    # Whatever is beyond the 99th percentile is one bar of the same width: its length would hide the others.
    axes.bar(
        [one.low for one in bins], [one.n_sequences for one in bins], width=width, align="edge", color=BARS,
        edgecolor="white", linewidth=0.6,
    )  # fmt: skip
    end = bins[-1].low + width
    axes.set_xlim(bins[0].low, end)
    last = bins[-1]
    if last.high >= last.low + width:
        label = f"to {last.high:,}"
        axes.annotate(label, (last.low + width, last.n_sequences), ha="right", va="bottom", color=INK)
    for percent in ("50", "95"):
        _line(axes, max(part.percentiles[percent] for part in lengths.parts), f"{percent} %", end)
    if lengths.max_length is not None:
        _line(axes, lengths.max_length, "max_length", end, color=LOST)
    axes.set_xlabel("tokens of a sequence")
    axes.set_ylabel("sequences")
    axes.spines[["top"]].set_visible(False)


def _line(axes: Any, at: int, label: str, end: int, color: str = FAINT) -> None:
    if at < end:
        axes.axvline(at, color=color, linewidth=1.2, linestyle="--")
        place = axes.get_xaxis_transform()
        axes.text(
            at, 0.98, f" {label}: {at:,}", transform=place, rotation=90, va="top", ha="left", color=color
        )


def _lost(axes: Any, lengths: Lengths) -> None:
    places = [limit.max_length for limit in lengths.limits]
    axes.plot(
        places,
        [100 * (1 - limit.kept_share) for limit in lengths.limits],
        color=LOST,
        marker="o",
        markersize=4,
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("% of the tokens that a limit loses", color=LOST)
    axes.spines[["top"]].set_visible(False)
