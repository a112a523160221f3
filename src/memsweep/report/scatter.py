"""The picture of a study: one point a measured trial and fronts as lines, in the form plotly draws.

A figure here is plain data: all points, and the front of every view.  page.js shows those of the view that
is picked, and makes the members of its front large.  Colours are names of the page's CSS variables
(`var(--ink)`), which page.js replaces, so that one figure serves light and dark.  A trial that was not
measured has no point: the page lists it beside the picture.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from memsweep.findings.find import Findings
from memsweep.findings.views import View, views
from memsweep.findings.words import changes_text, name_text, remarks_text, runs_text
from memsweep.record.trial import TrialResult
from memsweep.report.axis import axes
from memsweep.report.sheet import color_of

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon")
"""Marker of each group of changes, as many as there are colours."""

LARGE, SMALL = 13, 10
"""Sizes of markers on a front and off it; page.js has them too."""

MOST_BARS = 250
"""With more points than this only members of some front show their intervals: bars would hide the points."""

HOVER_COLUMNS = 64
"""Width at which hover text is wrapped: plotly does not wrap it."""


def figure(
    findings: Findings, reasons: Mapping[int, str], shown: Sequence[View] | None = None
) -> dict[str, Any]:
    """Return the scatter of the first two objectives: data and layout, ready for `Plotly.newPlot`.

    Args:
        findings: What to draw.  With a single objective, trials are drawn over their numbers.
        reasons: Trial number to why it is infeasible, for the text that hovers.
        shown: The views whose fronts are drawn; all when None.
    """
    scatter = _Scatter(findings, reasons, views(findings) if shown is None else shown)
    return {"data": scatter.traces(), "layout": scatter.layout()}


class _Scatter:
    def __init__(self, findings: Findings, reasons: Mapping[int, str], shown: Sequence[View]) -> None:
        self._findings, self._reasons, self._shown = findings, reasons, shown
        self._x, self._y = axes(findings)
        self._on_front = {result.number for view in shown for result in view.front}
        self._has_bars = {
            result.number
            for result in findings.measured
            if len(findings.measured) <= MOST_BARS or result.number in self._on_front
        }
        self._twins: dict[int, list[int]] = {}
        for result in findings.results:
            if result.reused_from is not None:
                self._twins.setdefault(result.reused_from, []).append(result.number)

    def traces(self) -> list[dict[str, Any]]:
        traces = []
        if len(self._findings.objectives) == 2:
            traces = [self._line(view, number) for number, view in enumerate(self._shown)]
        for index, kind in enumerate(self._findings.kinds()):
            members = [result for result in self._findings.measured if result.changes == kind]
            traces.append(self._group([result for result in members if result.feasible], index))
        infeasible = [result for result in self._findings.measured if not result.feasible]
        return [*traces, self._infeasible(infeasible)] if infeasible else traces

    def _line(self, view: View, number: int) -> dict[str, Any]:
        front = sorted(view.front, key=self._x.at)
        return {
            "type": "scatter",
            "mode": "lines",
            "name": "Pareto front",
            "x": [self._x.at(result) for result in front],
            "y": [self._y.at(result) for result in front],
            # Between two of its points a front offers the one that asks for less.
            "line": {
                "shape": "hv" if self._x.better == "less" else "vh",
                "width": 1.5,
                "color": "var(--ink)",
            },
            "hoverinfo": "skip",
            "meta": {"view": number},
        }

    def _group(self, members: Sequence[TrialResult], index: int) -> dict[str, Any]:
        color = f"var(--group-{color_of(index)})"
        is_large = [result.number in self._on_front for result in members]
        marker = {
            "symbol": SYMBOLS[index % len(SYMBOLS)],
            "color": color,
            "size": [LARGE if large else SMALL for large in is_large],
            "opacity": [1 if large else 0.55 for large in is_large],
            "line": {"width": 1.5, "color": "var(--paper)"},
        }
        return self._points(members, html.escape(changes_text(members[0].changes)), color, marker)

    def _infeasible(self, members: Sequence[TrialResult]) -> dict[str, Any]:
        marker = {"symbol": "x-thin", "size": 9, "line": {"width": 1.5, "color": "var(--faint)"}}
        return self._points(members, "measured, but not on offer", "var(--faint)", marker)

    def _points(
        self, members: Sequence[TrialResult], name: str, color: str, marker: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [self._x.at(result) for result in members],
            "y": [self._y.at(result) for result in members],
            "customdata": [result.number for result in members],
            "text": [self._hover(result) for result in members],
            "hovertemplate": "%{text}<extra></extra>",
            **self._error_bars(members, color),
            "marker": marker,
        }

    def _error_bars(self, members: Sequence[TrialResult], color: str) -> dict[str, Any]:
        """Return the bars of a trace, in each direction in which some of its trials have an interval."""
        bars = {}
        for key, axis in (("error_x", self._x), ("error_y", self._y)):
            arms = [
                axis.arms(self._findings, result) if result.number in self._has_bars else (None, None)
                for result in members
            ]
            if any(above is not None for _, above in arms):
                bars[key] = {
                    "type": "data",
                    "symmetric": False,
                    "array": [above for _, above in arms],
                    "arrayminus": [below for below, _ in arms],
                    "thickness": 1,
                    "width": 0,
                    "color": color,
                }
        return bars

    def _hover(self, result: TrialResult) -> str:
        """Return what hovers over a trial's point, as plotly's subset of HTML."""
        lines = [f"<b>trial {result.number}</b>", *_wrapped(result.label)]
        for name in self._findings.objectives:
            ratio = self._findings.ratio(result, name)
            compared = f", {ratio:.2f} times the baseline's" if ratio is not None else ""
            figure = self._findings.figure(result, name)
            lines.append(f"{html.escape(name_text(name))}: <b>{figure}</b>{compared}")
        reason = "" if result.feasible else self._reasons.get(result.number) or "not feasible"
        lines += _wrapped(reason or changes_text(result.changes))
        for text in (runs_text(result), remarks_text(result)):
            lines += _wrapped(text)
        if result.number in self._twins:
            twins = ", ".join(map(str, self._twins[result.number]))
            lines += _wrapped(f"the same set-up: trial {twins}")
        return "<br>".join([*lines, *_wrapped(result.command)])

    def layout(self) -> dict[str, Any]:
        # Beside the axis it would be read with the head turned, and cut off on a phone.
        place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom"}
        shapes, annotations = [], [annotation(html.escape(self._y.title), "var(--ink)") | place]
        for limit, text in self._x.limits(self._findings):
            if self._x.is_near(limit, self._findings):
                line = {"color": "var(--bad)", "width": 1.5, "dash": "dash"}
                over = {"yref": "paper", "y0": 0, "y1": 1}
                shapes.append({"type": "line", "x0": limit, "x1": limit, **over, "line": line})
                place = {"x": limit, "xanchor": "right", "yref": "paper", "y": 0, "yanchor": "bottom"}
            else:
                text = f"{text}, far to the right \N{RIGHTWARDS ARROW}"
                place = {"xref": "paper", "x": 1, "xanchor": "right", "yref": "paper", "y": 1}
                place["yanchor"] = "top"
            annotations.append(annotation(text, "var(--bad)") | place)
        return {
            **layout(),
            "xaxis": {**AXIS, "title": {"text": html.escape(self._x.title), "font": {"size": 13}}},
            "yaxis": AXIS,
            "shapes": shapes,
            "annotations": annotations,
        }


AXIS = {
    "gridcolor": "var(--line)",
    "linecolor": "var(--line)",
    "zeroline": False,
    "automargin": True,
    "tickformat": ",~r",
}
"""What every axis of the page looks like."""


def layout() -> dict[str, Any]:
    """Return what every figure of the page looks like."""
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "var(--ink)"},
        "hoverlabel": {
            "bgcolor": "var(--card)",
            "bordercolor": "var(--line)",
            "align": "left",
            "font": {"color": "var(--ink)", "size": 12},
        },
        "showlegend": False,
        "margin": {"l": 10, "r": 16, "t": 28, "b": 10},
        "hovermode": "closest",
    }


def annotation(text: str, color: str) -> dict[str, Any]:
    """Return a text in a figure, to be placed."""
    return {"text": text, "showarrow": False, "font": {"color": color, "size": 13}}


def _wrapped(text: str) -> list[str]:
    return [html.escape(line) for line in textwrap.wrap(text, HOVER_COLUMNS)]
