"""The page's pictures of many trials at once: every set-up as one line, and the front as it grew.

Plain data for page.js and plotly, as in `scatter.py`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from memsweep.findings.course import NEARLY_ALL, Point, course, nearly_all_after
from memsweep.findings.find import Findings
from memsweep.findings.parallel import Row, choices, objectives
from memsweep.findings.words import name_text
from memsweep.report.scatter import AXIS, annotation, layout
from memsweep.units import measure_text

ROW_PIXELS, EDGE_PIXELS = 58, 70
"""Height of one row of the picture of set-ups, and of what is above and below all rows."""


def parallel(findings: Findings) -> dict[str, Any] | None:
    """Return every measured set-up as a line through what it chose and what it measured.

    Rows lie below each other, so that labels are readable on a phone too; in the rows of objectives what is
    better lies to the right.

    Returns:
        `layout` for plotly, and `lines`: a trial's number, then where it passes each row, from 0 to 1; None
        where there is nothing to compare.
    """
    chosen = choices(findings)
    if not chosen:
        return None
    rows, trials = (*chosen, *objectives(findings)), findings.measured
    lines = [
        [result.number, *(_rounded(row.spread(result.number, index / (len(trials) - 1))) for row in rows)]
        for index, result in enumerate(trials)
    ]
    notes = [note for place, row in enumerate(rows) for note in _notes(row, place)]
    flat = {**AXIS, "showgrid": False, "showline": False, "showticklabels": False, "fixedrange": True}
    return {
        "lines": lines,
        "height": EDGE_PIXELS + ROW_PIXELS * len(rows),
        "layout": {
            **layout(),
            "xaxis": {**flat, "range": [-0.08, 1.08]},
            "yaxis": {**flat, "range": [len(rows) - 0.55, -0.6]},
            "annotations": notes,
            "shapes": [
                {"type": "line", "x0": 0, "x1": 1, "y0": place, "y1": place, "layer": "below"}
                | {"line": {"color": "var(--line)", "width": 1}}
                for place in range(len(rows))
            ],
        },
    }


def _rounded(place: float | None) -> float | None:
    return None if place is None else round(place, 4)


def _notes(row: Row, place: int) -> list[dict[str, Any]]:
    """Return a row's title above its left end, and its labels below their places."""
    above = {"x": 0, "xanchor": "left", "xshift": -14, "y": place, "yanchor": "bottom", "yshift": 7}
    # Lines pass behind the words.
    clear = {"bgcolor": "var(--paper)", "opacity": 0.92, "borderpad": 1}
    notes = [annotation(f"<b>{html.escape(row.title)}</b>", "var(--ink)") | above | clear]
    for at, text in row.ticks:
        anchor = "left" if at == 0 else "right" if at == 1 else "center"
        shift = {"left": -14, "right": 14, "center": 0}[anchor]
        below = {"x": at, "xanchor": anchor, "xshift": shift, "y": place, "yanchor": "top", "yshift": -6}
        notes.append(annotation(html.escape(text), "var(--faint)") | below | clear | {"font": _SMALL})
    return notes


_SMALL = {"size": 11, "color": "var(--faint)"}


def growth(findings: Findings) -> tuple[dict[str, Any], str] | None:
    """Return what the front covered after each trial, and what that says; None where it is not known."""
    points = course(findings)
    if not any(point.volume is not None for point in points):
        return None
    traces = [
        _grown("of all set-ups", points, [point.volume for point in points], "var(--ink)", "solid"),
    ]
    if any(point.same_volume != point.volume for point in points):
        same = [point.same_volume for point in points]
        traces.append(_grown("of those that train the same", points, same, "var(--group-0)", "dot"))
    figure = {
        **layout(),
        "xaxis": {**AXIS, "title": {"text": "trial", "font": {"size": 13}}, "rangemode": "tozero"},
        "yaxis": {**AXIS, "rangemode": "tozero"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "showlegend": len(traces) > 1,
    }
    reached = nearly_all_after(points)
    corner = ", ".join(
        f"{name_text(name)} {measure_text(name, at.value)}" for name, at in findings.study.reference.items()
    )
    last = next(point.number for point in reversed(points) if point.is_new)
    said = (
        f"How much the front covers, up to a worst corner that the study fixed at its start ({corner}). "
        f"Trial {last} was the last to add to it"
        + (f"; {100 * NEARLY_ALL:g} % of it was there after trial {reached}." if reached is not None else ".")
    )
    return {"data": traces, "layout": figure}, said


def _grown(
    name: str, points: Sequence[Point], volumes: Sequence[float | None], color: str, dash: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [point.number for point in points],
        "y": [None if volume is None else round(volume, 6) for volume in volumes],
        "customdata": [point.number for point in points],
        "line": {"shape": "hv", "width": 1.8, "color": color, "dash": dash},
        "hovertemplate": "after trial %{x}: %{y:.3f}<extra></extra>",
    }
