"""The picture that counts: the feasible front among all that was measured, as plotly draws it.

The dashboard's own scatter knows no limits, no intervals and no difference between set-ups that train the
same and those that do not; this one does.  A figure here is plain data.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import Any

from memsweep.findings.find import Findings
from memsweep.findings.scale import Scale
from memsweep.findings.words import changes_text, reason_text, tie_text
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon")
COLORS = ("#1f5fbf", "#b3541e", "#2f7d4f", "#8a3ea8", "#a8860f", "#4a6572")
"""Marker of each group of changes; they can be told apart on white and by people who see few colours."""
MOST_KINDS = 4
"""A card has room for a legend of so many groups, and for the lines and the infeasible beside them."""
BY_SIZE = {
    0: changes_text(()),
    1: "Changes one thing",
    2: "Changes more than one thing",
}
FAINT, LIMIT = "#9aa0a6", "#c0392b"
HOVER_COLUMNS = 64
"""Width at which hover text is wrapped: plotly does not wrap it."""


def front_picture(findings: Findings, scales: Sequence[Scale]) -> dict[str, Any]:
    """Return the first two objectives of everything measured, and the feasible front as a line.

    Args:
        findings: What to draw.  With a single objective, trials are drawn over their numbers.
        scales: How the objectives are shown.
    """
    traces = _lines(findings, scales)
    for (name, members), symbol, color in zip(_groups(findings), SYMBOLS, COLORS, strict=False):
        marker = {"symbol": symbol, "color": color, "size": 10}
        traces.append(_points(findings, scales, members, name, marker))
    infeasible = [result for result in findings.measured if not result.feasible]
    if infeasible:
        marker = {"symbol": "x-thin", "size": 9, "line": {"width": 1.5, "color": FAINT}}
        traces.append(_points(findings, scales, infeasible, "measured, not feasible", marker))
    return {"data": traces, "layout": _layout(findings, scales)}


def hover(findings: Findings, result: TrialResult) -> str:
    """Return what hovers over a trial's point, as plotly's subset of HTML."""
    lines = [f"<b>trial {result.number}</b>", *_wrapped(result.label)]
    lines += [_figure(findings, result, name) for name in findings.objectives]
    tied = findings.tied.get(result.number, ()) or findings.contenders.get(result.number, ())
    for text in (changes_text(result.changes), reason_text(result, findings.study), tie_text(tied)):
        lines += _wrapped(text)
    return "<br>".join(lines)


def titled(text: str, legend_rows: int = 1) -> dict[str, Any]:
    """Return a layout with a title above and the legend below, as the dashboard's cards leave room for."""
    return {
        "title": {"text": text, "font": {"size": 13}, "x": 0, "xanchor": "left", "pad": {"l": 8}},
        "template": {"layout": {"paper_bgcolor": "white", "plot_bgcolor": "white"}},
        "margin": {"l": 64, "r": 16, "t": 56, "b": 60 + 19 * legend_rows},
        "legend": {"orientation": "h", "x": 0, "y": -0.26, "yanchor": "top", "font": {"size": 11}},
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "font": {"family": "Roboto, sans-serif", "color": "#202124"},
    }


def _figure(findings: Findings, result: TrialResult, name: str) -> str:
    ratio = findings.ratio(result, name)
    compared = "" if ratio is None else f", {ratio:.2f} times the baseline's"
    return html.escape(f"{findings.figure(result, name)}{compared}")


def _wrapped(text: str) -> list[str]:
    return [html.escape(line) for line in textwrap.wrap(text, HOVER_COLUMNS)]


def _place(result: TrialResult, scales: Sequence[Scale]) -> tuple[float, float]:
    """Return where a trial lies: the second objective, or its number where there is one, and the first."""
    down, *others = (scale.shown(result.objectives[scale.name]) for scale in scales)
    return (others[0] if others else result.number), down


def _points(
    findings: Findings,
    scales: Sequence[Scale],
    members: Sequence[TrialResult],
    name: str,
    marker: dict[str, Any],
) -> dict[str, Any]:
    on_front = {result.number for result in (*findings.front, *findings.same_front)}
    places = [_place(result, scales) for result in members]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": html.escape(name),
        "x": [x for x, _ in places],
        "y": [y for _, y in places],
        "text": [str(result.number) if result.number in on_front else "" for result in members],
        "textposition": "top center",
        "textfont": {"size": 11},
        "cliponaxis": False,
        "hovertext": [hover(findings, result) for result in members],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {**marker, "opacity": [1 if result.number in on_front else 0.5 for result in members]},
    }


def _groups(findings: Findings) -> list[tuple[str, list[TrialResult]]]:
    """Return the feasible trials by what they change, in words; by how much, where the legend has no room."""
    feasible = [result for result in findings.measured if result.feasible]
    kinds = findings.kinds()
    if len(kinds) <= MOST_KINDS:
        return [(changes_text(kind), [one for one in feasible if one.changes == kind]) for kind in kinds]
    by_size = {size: [one for one in feasible if min(len(one.changes), 2) == size] for size in BY_SIZE}
    return [(BY_SIZE[size], members) for size, members in by_size.items() if members]


def _lines(findings: Findings, scales: Sequence[Scale]) -> list[dict[str, Any]]:
    if len(scales) != 2:
        return []
    fronts = [(findings.front, "the feasible front", "solid")]
    if {result.number for result in findings.same_front} != {result.number for result in findings.front}:
        fronts.append((findings.same_front, "front of what trains exactly the same", "dot"))
    lines = []
    for members, name, dash in fronts:
        places = sorted(_place(result, scales) for result in members)
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [x for x, _ in places],
                "y": [y for _, y in places],
                "line": {"color": "#202124", "width": 1.5, "dash": dash},
                "hoverinfo": "skip",
            }
        )
    return lines


def _layout(findings: Findings, scales: Sequence[Scale]) -> dict[str, Any]:
    study = findings.study
    layout = titled("The feasible front: the picture that counts", legend_rows=len(_groups(findings)) + 2)
    axis = {"gridcolor": "#e3e6e8", "zeroline": False, "automargin": True}
    titles = [f"{scale.title}, {_better(study.objectives[scale.name])}" for scale in scales]
    # Beside the axis a title is cut off: the card is low.
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1.02, "yanchor": "bottom"}
    above = {"text": html.escape(titles[0]), "showarrow": False, "font": {"size": 12}, **place}
    across = titles[1] if len(titles) > 1 else "trial"
    shapes, annotations = [], [above]
    for constraint in study.constraints.values():
        if len(scales) > 1 and constraint.measure == scales[1].name and constraint.at_most is not None:
            at = scales[1].shown(constraint.at_most)
            line = {"color": LIMIT, "width": 1.5, "dash": "dash"}
            shapes.append(
                {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}
            )
            text = f"limit {measure_text(constraint.measure, constraint.at_most)}"
            place = {"x": at, "xanchor": "right", "yref": "paper", "y": 0.02, "yanchor": "bottom"}
            annotations.append({"text": text, "showarrow": False, "font": {"color": LIMIT}, **place})
    return {
        **layout,
        "xaxis": {**axis, "title": {"text": html.escape(across)}},
        "yaxis": axis,
        "shapes": shapes,
        "annotations": annotations,
    }


def _better(direction: Direction) -> str:
    return "more is better" if direction is Direction.MAXIMIZE else "less is better"
