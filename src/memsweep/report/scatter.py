"""The picture of a study: one point a measured trial and the front as a line, in the form plotly draws.

A figure here is plain data.  Colours are names of the page's CSS variables (`var(--ink)`), which page.js
replaces, so that one figure serves light and dark.  A trial that was not measured has no point: the page
lists it beside the picture.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsweep.findings.find import Findings
from memsweep.findings.words import changes_text, name_text, remarks_text, runs_text, tie_text
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import GIB, KIB, MIB, measure_text

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon")
"""Marker of each group of changes; its colour is `var(--group-<n>)` with the same number."""

HOVER_COLUMNS = 64
"""Width at which hover text is wrapped: plotly does not wrap it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of the picture.

    Attributes:
        name: The objective; None for the trial's number.
        better: `more` or `less`; empty for the trial's number.
        divisor: What values are divided by to be read in `unit`.
        unit: Unit in words; empty when there is none.
    """

    name: str | None
    better: str
    divisor: float
    unit: str

    @classmethod
    def of(cls, name: str | None, findings: Findings) -> Axis:
        """Return the axis for an objective, in the unit that suits its largest value."""
        if name is None:
            return cls(None, "", 1, "")
        better = "more" if findings.study.objectives[name] is Direction.MAXIMIZE else "less"
        if name.endswith("_bytes"):
            largest = max((abs(result.objectives[name]) for result in findings.measured), default=0)
            units = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
            divisor, unit = next(((size, text) for size, text in units if largest >= size), (1, "bytes"))
            return cls(name, better, divisor, unit)
        if name.endswith("_per_second"):
            return cls(name, better, 1, name.removesuffix("_per_second").replace("_", " ") + "/s")
        return cls(name, better, 1, "s" if name.endswith("_seconds") else "")

    @property
    def title(self) -> str:
        """What stands beside the axis."""
        if self.name is None:
            return "trial"
        unit = f" ({self.unit})" if self.unit else ""
        return f"{name_text(self.name)}{unit}, {self.better} is better"

    def at(self, result: TrialResult) -> float:
        """Return where a measured trial lies."""
        return result.number if self.name is None else result.objectives[self.name] / self.divisor

    def arms(self, findings: Findings, result: TrialResult) -> tuple[float | None, float | None]:
        """Return how far a trial's interval reaches below and above; None where it has none."""
        bounds = None if self.name is None else findings.interval(result, self.name)
        if bounds is None:
            return None, None
        at = self.at(result)
        return max(0.0, at - bounds[0] / self.divisor), max(0.0, bounds[1] / self.divisor - at)


def figure(findings: Findings, reasons: Mapping[int, str]) -> dict[str, Any]:
    """Return the scatter of the first two objectives: data and layout, ready for `Plotly.newPlot`.

    Args:
        findings: What to draw.  With a single objective, trials are drawn over their numbers.
        reasons: Trial number to why it is infeasible, for the text that hovers.
    """
    names = findings.objectives
    x = Axis.of(names[1] if len(names) > 1 else None, findings)
    y = Axis.of(names[0], findings)
    feasible = [result for result in findings.measured if result.feasible]
    traces = _lines(findings, x, y)
    for index, kind in enumerate(findings.kinds()):
        members = [result for result in feasible if result.changes == kind]
        traces.append(_points(findings, members, index, x, y))
    infeasible = [result for result in findings.measured if not result.feasible]
    if infeasible:
        traces.append(_infeasible(findings, infeasible, reasons, x, y))
    return {"data": traces, "layout": _layout(findings, x, y)}


def _lines(findings: Findings, x: Axis, y: Axis) -> list[dict[str, Any]]:
    if len(findings.objectives) != 2:
        return []
    fronts = [(findings.front, "Pareto front", "solid")]
    same_front = {result.number for result in findings.same_front}
    if same_front != {result.number for result in findings.front}:
        fronts.append((findings.same_front, "front of what trains the same", "dot"))
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [x.at(result) for result in sorted(front, key=x.at)],
            "y": [y.at(result) for result in sorted(front, key=x.at)],
            # Between two of its points a front offers the one that asks for less.
            "line": {
                "shape": "hv" if x.better == "less" else "vh",
                "width": 1.5,
                "dash": dash,
                "color": color,
            },
            "hoverinfo": "skip",
        }
        for (front, name, dash), color in zip(fronts, ("var(--ink)", "var(--group-0)"), strict=False)
        if front
    ]


def _error_bars(
    findings: Findings, members: Sequence[TrialResult], x: Axis, y: Axis, color: str
) -> dict[str, Any]:
    """Return the bars of a trace, in each direction in which some of its trials have an interval."""
    bars = {}
    for key, axis in (("error_x", x), ("error_y", y)):
        arms = [axis.arms(findings, result) for result in members]
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


def _points(
    findings: Findings, members: Sequence[TrialResult], index: int, x: Axis, y: Axis
) -> dict[str, Any]:
    on_front = {result.number for result in (*findings.front, *findings.same_front)}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": html.escape(changes_text(members[0].changes)),
        "x": [x.at(result) for result in members],
        "y": [y.at(result) for result in members],
        "customdata": [result.number for result in members],
        "text": [hover(findings, result) for result in members],
        "hovertemplate": "%{text}<extra></extra>",
        **_error_bars(findings, members, x, y, f"var(--group-{index % len(SYMBOLS)})"),
        "marker": {
            "symbol": SYMBOLS[index % len(SYMBOLS)],
            "color": f"var(--group-{index % len(SYMBOLS)})",
            "size": [13 if result.number in on_front else 8 for result in members],
            "opacity": [1 if result.number in on_front else 0.55 for result in members],
            "line": {"width": 1.5, "color": "var(--paper)"},
        },
    }


def _infeasible(
    findings: Findings, members: Sequence[TrialResult], reasons: Mapping[int, str], x: Axis, y: Axis
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured, but not feasible",
        "x": [x.at(result) for result in members],
        "y": [y.at(result) for result in members],
        "customdata": [result.number for result in members],
        "text": [hover(findings, result, reasons.get(result.number, "not feasible")) for result in members],
        "hovertemplate": "%{text}<extra></extra>",
        **_error_bars(findings, members, x, y, "var(--faint)"),
        "marker": {"symbol": "x-thin", "size": 9, "line": {"width": 1.5, "color": "var(--faint)"}},
    }


def hover(findings: Findings, result: TrialResult, reason: str = "") -> str:
    """Return what hovers over a trial's point, as plotly's subset of HTML."""
    twins = [other.number for other in findings.results if other.reused_from == result.number]
    lines = [f"<b>trial {result.number}</b>", *_wrapped(result.label)]
    for name in result.objectives:
        ratio = findings.ratio(result, name)
        compared = f", {ratio:.2f} times the baseline's" if ratio is not None else ""
        lines.append(f"{html.escape(name_text(name))}: <b>{findings.figure(result, name)}</b>{compared}")
    lines += _wrapped(changes_text(result.changes)) if not reason else _wrapped(reason)
    tied = findings.tied.get(result.number, ()) or findings.contenders.get(result.number, ())
    for text in (tie_text(tied), runs_text(result), remarks_text(result)):
        lines += _wrapped(text)
    if twins:
        lines += _wrapped("the same set-up: trial " + ", ".join(map(str, twins)))
    return "<br>".join([*lines, *_wrapped(result.command)])


def _wrapped(text: str) -> list[str]:
    return [html.escape(line) for line in textwrap.wrap(text, HOVER_COLUMNS)]


def _layout(findings: Findings, x: Axis, y: Axis) -> dict[str, Any]:
    axis = {
        "gridcolor": "var(--line)",
        "linecolor": "var(--line)",
        "zeroline": False,
        "automargin": True,
        "tickformat": ",~r",
    }
    # Beside the axis it would be read with the head turned, and cut off on a phone.
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom"}
    shapes, annotations = [], [_annotation(html.escape(y.title), "var(--ink)") | place]
    for constraint in findings.study.constraints.values():
        if constraint.measure == x.name and constraint.upper and constraint.bound is not None:
            at = constraint.bound / x.divisor
            line = {"color": "var(--bad)", "width": 1.5, "dash": "dash"}
            over = {"yref": "paper", "y0": 0, "y1": 1}
            shapes.append({"type": "line", "x0": at, "x1": at, **over, "line": line})
            text = f"limit {measure_text(x.name, constraint.bound)}"
            place = {"x": at, "xanchor": "right", "yref": "paper", "y": 0, "yanchor": "bottom"}
            annotations.append(_annotation(text, "var(--bad)") | place)
    return {
        "xaxis": {**axis, "title": {"text": html.escape(x.title)}},
        "yaxis": axis,
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
        "shapes": shapes,
        "annotations": annotations,
    }


def _annotation(text: str, color: str) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "font": {"color": color, "size": 13}}
