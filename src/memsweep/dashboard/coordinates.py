"""All choices of a study side by side, one line a measured trial: parallel coordinates.

Drawn as lines, and not as plotly's own `parcoords`: that needs WebGL, which a browser without a graphics card
may lack.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from memsweep.dashboard.feasible_front import COLORS, FAINT, hover, titled
from memsweep.findings.find import Findings
from memsweep.findings.parallel import Row, choices, objectives
from memsweep.record.trial import TrialResult

MOST_AXES = 12
"""More choices than that cannot be told apart in a card of the dashboard; those with the most values stay."""


def parallel_picture(findings: Findings) -> dict[str, Any] | None:
    """Return the picture; None where fewer than two trials were measured, or nothing was varied."""
    chosen = _widest(choices(findings))
    if not chosen:
        return None
    axes, measured = (*chosen, *objectives(findings)), findings.measured
    front = {result.number for result in findings.front}
    groups = (
        (
            "not feasible",
            [r for r in measured if not r.feasible],
            {"color": FAINT, "width": 1, "dash": "dot"},
        ),
        ("feasible", [r for r in measured if r.feasible and r.number not in front], {"color": "#a9c0df"}),
        ("on the feasible front", list(findings.front), {"color": COLORS[0], "width": 2.5}),
    )
    traces = [_lines(findings, members, axes, name, line) for name, members, line in groups if members]
    return {"data": traces, "layout": _layout(axes)}


def _widest(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return as many rows as there is room for: those with the most values, in their order."""
    order = sorted(range(len(rows)), key=lambda index: (-len(set(rows[index].values.values())), index))
    return tuple(rows[index] for index in sorted(order[:MOST_AXES]))


def _lines(
    findings: Findings, members: Sequence[TrialResult], axes: Sequence[Row], name: str, line: dict[str, Any]
) -> dict[str, Any]:
    """Return one trace for a group of trials: a line each, with nothing between them."""
    across: list[float | None] = []
    up: list[float | None] = []
    texts: list[str] = []
    shares = {
        result.number: index / (len(findings.measured) - 1) for index, result in enumerate(findings.measured)
    }
    for result in members:
        text = hover(findings, result)
        for index, axis in enumerate(axes):
            across.append(index)
            up.append(axis.spread(result.number, shares[result.number]))
            texts.append(text)
        across.append(None)
        up.append(None)
        texts.append("")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": across,
        "y": up,
        "connectgaps": False,
        "line": {"width": 1.2, **line},
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _layout(axes: Sequence[Row]) -> dict[str, Any]:
    layout = titled("Every measured set-up; the better figure is up")
    hidden = {"showgrid": False, "zeroline": False, "showticklabels": False}
    line = {"color": "#5f6368", "width": 1}
    shapes = [
        {"type": "line", "x0": index, "x1": index, "y0": -0.07, "y1": 1.07, "line": line, "layer": "below"}
        for index in range(len(axes))
    ]
    annotations = []
    for index, axis in enumerate(axes):
        title = {"x": index, "y": -0.1, "yanchor": "top", "xanchor": "center", "textangle": 0}
        annotations.append(_annotation(_broken(axis.title), **title, font={"size": 10.5}))
        annotations += [
            _annotation(html.escape(text), x=index, y=place, xanchor="left", xshift=3, font={"size": 9.5})
            for place, text in axis.ticks
        ]
    return {
        **layout,
        "xaxis": {**hidden, "range": [-0.15, len(axes) - 0.4]},
        "yaxis": {**hidden, "range": [-0.28, 1.1]},
        "shapes": shapes,
        "annotations": annotations,
        "legend": {**layout["legend"], "y": -0.02},
    }


def _broken(title: str) -> str:
    """Return a title in lines that fit between two axes."""
    return "<br>".join(html.escape(word) for word in title.replace("_", " ").split(" "))


def _annotation(text: str, **place: Any) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "bgcolor": "rgba(255,255,255,0.75)", **place}
