"""The report's pictures as SVG and PNG, drawn without a browser: the front, the ladder, the effects.

matplotlib is imported only here, and only when pictures are drawn.  The same study gives the same bytes: no
date, no random identifiers, and letters drawn as outlines of the font that comes with matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsweep.findings.effects import effects
from memsweep.findings.find import Findings
from memsweep.findings.gains import Gain, Gains, factor_text
from memsweep.findings.ladder import ladder
from memsweep.findings.words import changes_text, counts_text, name_text
from memsweep.record.folder import StudyFolder, write_bytes
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.report.axis import Axis, axes
from memsweep.report.sheet import color_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#1f5fbf", "#c8690e", "#12805c", "#8a4bbd", "#b8348a", "#6b6f1a")
"""Colours of the groups of changes: those of page.css in light."""

MARKERS = ("o", "D", "s", "^", "*", "h")
"""Markers of the groups, in the order of the page's."""

INK, FAINT, BAD, GOOD = "#1c2126", "#5f6973", "#b3261e", "#12805c"
MOST_NUMBERS, MOST_ROWS = 24, 24
"""Members of the front that are named in the picture; choices in the picture of effects."""

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "memsweep",
    "axes.edgecolor": "#dfe2e6",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.dpi": 150,
}
_NO_DATE: Mapping[str, Mapping[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def write_pictures(study_folder: StudyFolder, findings: Findings) -> tuple[Path, ...]:
    """Draw every picture that there is something to draw for, and return where they are.

    A picture of an earlier time that is not drawn any more is removed.

    Args:
        study_folder: The study's folder.
        findings: What to draw.
    """
    import matplotlib as mpl

    draw: dict[str, Callable[[Findings], Figure | None]] = {
        "front": front_picture,
        "ladder": ladder_picture,
        "effects": effects_picture,
    }
    written = []
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever style a person has set
        mpl.rcParams.update(_STYLE)
        for name, one in draw.items():
            drawn = one(findings)
            for form, metadata in _NO_DATE.items():
                path = study_folder.pictures / f"{name}.{form}"
                if drawn is None:
                    path.unlink(missing_ok=True)
                    continue
                file = io.BytesIO()
                drawn.savefig(file, format=form, metadata=dict(metadata))
                drawn.set_layout_engine("none")  # places are known: finding them is a third of the work
                write_bytes(path, file.getvalue())
                written.append(path)
    return tuple(written)


def front_picture(findings: Findings) -> Figure | None:
    """Return the scatter of the first two objectives with both fronts; None when nothing was measured."""
    if not findings.measured:
        return None
    drawn = _figure(7.4, 4.4 + 0.17 * (len(findings.kinds()) + 3))  # a line of the legend for each kind
    axis: Axes = drawn.subplots()
    x, y = axes(findings)
    on_front = {result.number for result in (*findings.front, *findings.same_front)}
    for index, kind in enumerate(findings.kinds()):
        members = [result for result in findings.measured if result.feasible and result.changes == kind]
        _group(axis, findings, members, index, x, y, on_front)
    infeasible = [result for result in findings.measured if not result.feasible]
    if infeasible:
        places = [x.at(result) for result in infeasible], [y.at(result) for result in infeasible]
        axis.scatter(*places, marker="x", s=22, color=FAINT, linewidths=1, label="measured, but not on offer")
    if len(findings.objectives) == 2:
        _lines(axis, findings, x, y)
    for limit, text in x.limits(findings):
        if x.is_near(limit, findings):
            axis.axvline(limit, color=BAD, linestyle="--", linewidth=1)
        where = f"{text} " if x.is_near(limit, findings) else f"{text}, far to the right "
        place = limit if x.is_near(limit, findings) else axis.get_xlim()[1]
        axis.text(place, axis.get_ylim()[0], where, color=BAD, ha="right", va="bottom")
    numbered = sorted(findings.front, key=x.at)
    for result in numbered if len(numbered) <= MOST_NUMBERS else ():
        axis.annotate(
            str(result.number), (x.at(result), y.at(result)), (4, 5), textcoords="offset points", color=FAINT
        )
    axis.set_xlabel(x.title)
    axis.set_title(y.title, loc="left", fontsize=9)
    axis.grid(color="#eef1f4")
    axis.set_axisbelow(True)
    drawn.legend(loc="outside lower left", frameon=False, fontsize=8)
    _missing(drawn, findings)
    return drawn


def ladder_picture(findings: Findings) -> Figure | None:
    """Return the steps to the best combination; None without any."""
    found = ladder(findings, findings.front)
    if found is None or not found.rungs:
        return None
    one = Gain(ratio=1.0, interval=None)
    label = "baseline" if findings.baseline is not None else found.start.label
    rows: list[tuple[str, Gains]] = [(label, dict.fromkeys(findings.objectives, one))]
    known = set(found.start.changes)
    for rung in found.rungs:
        new = [change.replace("_", " ") for change in rung.result.changes if change not in known]
        known |= set(rung.result.changes)
        note = f"\nchanges {', '.join(new)}" if new else ""
        rows.append((" ".join(f"+ {text}" for text in rung.adds) + note, rung.gains))
    return _factors(findings, "Step by step to the best combination, as multiples of the start", rows)


def effects_picture(findings: Findings) -> Figure | None:
    """Return the factor of each choice over all trials, the largest first; None where they are not known."""
    found = effects(findings)
    rows = [(effect.choice, effect.gains) for effect in found.effects if effect.gains] if found else []
    title = "What each choice multiplies an objective by, over all measured trials"
    return _factors(findings, title, rows[:MOST_ROWS]) if rows else None


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _group(
    axis: Axes,
    findings: Findings,
    members: Sequence[TrialResult],
    index: int,
    x: Axis,
    y: Axis,
    on_front: set[int],
) -> None:
    """Draw the set-ups that change one set of things: large on a front, with intervals."""
    color, marker = COLORS[color_of(index)], MARKERS[index % len(MARKERS)]
    label: str | None = changes_text(members[0].changes)
    for is_on, size, alpha in ((True, 52, 1.0), (False, 24, 0.5)):
        drawn = [result for result in members if (result.number in on_front) is is_on]
        if not drawn:
            continue
        places = [x.at(result) for result in drawn], [y.at(result) for result in drawn]
        axis.scatter(
            *places,
            s=size,
            alpha=alpha,
            color=color,
            marker=marker,
            edgecolors="white",
            linewidths=0.6,
            label=label,
        )
        label = None
    for result in members:
        if result.number in on_front:
            for arms, key in ((x.arms(findings, result), "xerr"), (y.arms(findings, result), "yerr")):
                if arms[0] is not None:
                    bars: Any = {key: [[arms[0]], [arms[1]]]}
                    axis.errorbar(x.at(result), y.at(result), **bars, color=color, linewidth=0.9, zorder=1)


def _lines(axis: Axes, findings: Findings, x: Axis, y: Axis) -> None:
    fronts = [(findings.front, INK, "-", "Pareto front")]
    if {r.number for r in findings.same_front} != {r.number for r in findings.front}:
        fronts.append((findings.same_front, COLORS[0], ":", "front of what trains the same"))
    for front, color, style, label in fronts:
        members = sorted(front, key=x.at)
        if members:
            axis.step(
                [x.at(result) for result in members],
                [y.at(result) for result in members],
                where="post" if x.better == "less" else "pre",
                color=color,
                linestyle=style,
                linewidth=1.1,
                label=label,
                zorder=1,
            )


def _missing(drawn: Figure, findings: Findings) -> None:
    """Say below the picture which trials have no place in it."""
    numbers = {result.number for result in findings.unmeasured}
    counts: dict[str, int] = {}
    for result in findings.unmeasured:
        counts[result.outcome.type] = counts.get(result.outcome.type, 0) + 1
    if numbers:
        drawn.supxlabel(
            f"not in the picture: {counts_text(counts)}", fontsize=8, color=FAINT, x=0.99, ha="right"
        )


def _factors(findings: Findings, title: str, rows: Sequence[tuple[str, Gains]]) -> Figure:
    """Draw factors on logarithmic axes: a row each, a panel an objective."""
    names = findings.objectives
    n_lines = sum(1 + label.count("\n") for label, _ in rows)
    drawn = _figure(2.6 + 2.9 * len(names), 1.2 + 0.27 * (n_lines + len(rows) / 3))
    panels = drawn.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        is_more = findings.study.objectives[name] is Direction.MAXIMIZE
        known = [gains[name].ratio for _, gains in rows if name in gains]
        reach = 1.35 * max([log(1.1), *(abs(log(ratio)) for ratio in known)])
        panel.axvline(0, color="#b9c0c7", linewidth=1)
        for place, (_, gains) in enumerate(rows):
            if name in gains:
                _factor(panel, place, gains[name], reach, is_more=is_more)
        shown = _ticks(reach)
        panel.set_xticks([log(tick) for tick in shown], [f"{tick:g} x" for tick in shown])
        panel.set_xlim(-reach, reach)
        panel.set_title(
            f"{name_text(name)}, {'more' if is_more else 'less'} is better", fontsize=9, loc="left"
        )
        panel.grid(axis="x", color="#eef1f4")
        panel.set_axisbelow(True)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(rows)), [label for label, _ in rows])
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    drawn.suptitle(title, fontsize=10, x=0.01, ha="left")
    return drawn


def _ticks(reach: float) -> list[float]:
    """Return the factors that are named on an axis, from 1 outwards, each with room for its name."""
    shown = [1.0]
    for outwards in (
        sorted(tick for tick in _TICKS if tick > 1),
        sorted((t for t in _TICKS if t < 1), reverse=True),
    ):
        last = 0.0
        for tick in outwards:
            if abs(log(tick)) <= reach and abs(log(tick)) - last >= reach / 4:
                shown.append(tick)
                last = abs(log(tick))
    return sorted(shown)


def _factor(panel: Axes, place: int, gain: Gain, reach: float, *, is_more: bool) -> None:
    is_better = (gain.ratio > 1) is is_more
    color = FAINT if not gain.is_sure else GOOD if is_better else BAD
    at = log(gain.ratio)
    if gain.interval is not None:
        low, high = (max(-reach, min(reach, log(end))) for end in gain.interval)
        panel.plot([low, high], [place, place], color=color, linewidth=1.3)
    panel.plot([at], [place], "o", color=color, markersize=4.5)
    panel.text(
        at, place - 0.18, f"{factor_text(gain.ratio)} x", fontsize=7, color=INK, ha="center", va="bottom"
    )
