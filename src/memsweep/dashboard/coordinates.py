"""All choices of a study side by side, one line a measured trial: parallel coordinates.

Drawn as lines, and not as plotly's own `parcoords`: that needs WebGL, which a browser without a graphics card
may lack.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution

from memsweep.dashboard.feasible_front import COLORS, FAINT, hover, titled
from memsweep.dashboard.parameters import drawn, short_names
from memsweep.findings.scale import Scale
from memsweep.findings.find import Findings
from memsweep.record.trial import TrialResult

MOST_AXES = 12
"""More choices than that cannot be told apart in a card of the dashboard; those with the most values stay."""
SPREAD = 0.12
"""The share of the room between two categories over which their lines are spread, so that all are seen."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis.

    Attributes:
        title: What stands below it.
        places: Trial number to where its line crosses, from 0 to 1; a trial without the choice has none.
        ticks: Places with texts.
    """

    title: str
    places: Mapping[int, float]
    ticks: Sequence[tuple[float, str]]


def parallel_picture(
    findings: Findings, scales: Sequence[Scale], known: Mapping[str, BaseDistribution]
) -> dict[str, Any] | None:
    """Return the picture; None where fewer than two trials were measured, or nothing was varied.

    Args:
        findings: What to draw.
        scales: How the objectives are shown.
        known: Searched key to its distribution.
    """
    measured = findings.measured
    choices = _choices(measured, known)
    if len(measured) < 2 or not choices:
        return None
    axes = [*choices, *(_objective(measured, scale) for scale in scales)]
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


def _choices(measured: Sequence[TrialResult], known: Mapping[str, BaseDistribution]) -> list[_Axis]:
    names = short_names(list(known))
    values = {result.number: drawn(result, known) for result in measured}
    n_different = {key: len({str(row[key]) for row in values.values() if key in row}) for key in known}
    varied = [key for key in known if n_different[key] > 1]
    kept = set(sorted(varied, key=lambda key: -n_different[key])[:MOST_AXES])
    axes = []
    for key in (key for key in varied if key in kept):
        column = {number: row[key] for number, row in values.items() if key in row}
        distribution = known[key]
        if isinstance(distribution, CategoricalDistribution):
            axes.append(_categories(names[key], column, distribution.choices))
        else:
            axes.append(_numbers(names[key], column))
    return axes


def _categories(title: str, column: Mapping[int, Any], choices: Sequence[Any]) -> _Axis:
    seen = [choice for choice in choices if choice in column.values()]
    gap = 1 / max(len(seen) - 1, 1)
    at = {choice: index * gap for index, choice in enumerate(seen)}
    numbers = sorted(column)
    places = {}
    for order, number in enumerate(numbers):
        shift = (order / max(len(numbers) - 1, 1) - 0.5) * SPREAD * gap
        places[number] = at[column[number]] + shift
    return _Axis(title, places, [(place, str(choice)) for choice, place in at.items()])


def _numbers(title: str, column: Mapping[int, float]) -> _Axis:
    low, high = min(column.values()), max(column.values())
    size = high - low or 1
    places = {number: (value - low) / size for number, value in column.items()}
    return _Axis(
        title, places, [(0.0, f"{low:,.4g}"), (1.0, f"{high:,.4g}")] if high > low else [(0, f"{low:,.4g}")]
    )


def _objective(measured: Sequence[TrialResult], scale: Scale) -> _Axis:
    return _numbers(scale.title, {r.number: scale.shown(r.objectives[scale.name]) for r in measured})


def _lines(
    findings: Findings, members: Sequence[TrialResult], axes: Sequence[_Axis], name: str, line: dict[str, Any]
) -> dict[str, Any]:
    """Return one trace for a group of trials: a line each, with nothing between them."""
    across: list[float | None] = []
    up: list[float | None] = []
    texts: list[str] = []
    for result in members:
        text = hover(findings, result)
        for index, axis in enumerate(axes):
            across.append(index)
            up.append(axis.places.get(result.number))
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


def _layout(axes: Sequence[_Axis]) -> dict[str, Any]:
    layout = titled("Every measured set-up, choice by choice")
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
