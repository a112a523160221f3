"""The page's pictures of many trials at once: every set-up as one line, and the front as it grew.

Plain data for page.js and plotly, as in `scatter.py`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

from memsweep.findings.course import NEARLY_ALL, Point, course, nearly_all_after
from memsweep.findings.find import Findings
from memsweep.findings.setup import set_up
from memsweep.findings.words import name_text
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.report.scatter import AXIS, annotation, layout
from memsweep.units import measure_text

ROW_PIXELS, EDGE_PIXELS = 58, 70
"""Height of one row of the picture of set-ups, and of what is above and below all rows."""

MOST_OPTIONS = 12
"""A key with more values than this has no row: nobody could read its labels."""

JITTER = 0.035
"""Lines through one option lie this far apart at most, as a share of the width, so that many can be seen."""


def parallel(findings: Findings) -> dict[str, Any] | None:
    """Return every measured set-up as a line through what it chose and what it measured.

    Rows lie below each other, so that labels are readable on a phone too; in the rows of objectives what is
    better lies to the right.

    Returns:
        `layout` for plotly, and `lines`: a trial's number, then where it passes each row, from 0 to 1; None
        where there is nothing to compare.
    """
    trials = findings.measured
    rows = _rows(findings, trials)
    if len(trials) < 2 or len(rows) < 2:
        return None
    lines = [
        [result.number, *(row.place(result, index / max(1, len(trials) - 1)) for row in rows)]
        for index, result in enumerate(trials)
    ]
    notes = [note for place, row in enumerate(rows) for note in row.notes(place)]
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


class _Options:
    """The row of a key: one place an option, the start's leftmost."""

    def __init__(self, key: str, options: Sequence[str], chosen: Mapping[int, Mapping[str, str]]) -> None:
        self._key, self._options, self._chosen = key, options, chosen

    def place(self, result: TrialResult, share: float) -> float | None:
        option = self._chosen[result.number].get(self._key)
        if option is None:
            return None
        at = self._options.index(option) / (len(self._options) - 1)
        return round(at + JITTER * (2 * share - 1), 4)

    def notes(self, place: int) -> list[dict[str, Any]]:
        last = len(self._options) - 1
        return _notes(
            self._key.rsplit(".", 1)[-1],
            [(index / last, option) for index, option in enumerate(self._options)],
            place,
        )


class _Objective:
    """The row of an objective, on a logarithmic axis where all values are above zero."""

    def __init__(self, name: str, study: Study, trials: Sequence[TrialResult]) -> None:
        self._name = name
        values = [result.objectives[name] for result in trials]
        self._is_ratio = min(values) > 0
        ends = (min(values), max(values))
        self._worst, self._best = ends if study.objectives[name] is Direction.MAXIMIZE else ends[::-1]

    def place(self, result: TrialResult, share: float) -> float:  # noqa: ARG002, every row has one
        return round(self._share(result.objectives[self._name]), 4)

    def notes(self, place: int) -> list[dict[str, Any]]:
        ends = [(0.0, self._worst), (1.0, self._best)] if self._worst != self._best else [(0.5, self._best)]
        texts = [(at, measure_text(self._name, value)) for at, value in ends]
        return _notes(name_text(self._name), texts, place)

    def _share(self, value: float) -> float:
        if self._worst == self._best:
            return 0.5
        if self._is_ratio:
            return log(value / self._worst) / log(self._best / self._worst)
        return (value - self._worst) / (self._best - self._worst)


def _rows(findings: Findings, trials: Sequence[TrialResult]) -> list[_Options | _Objective]:
    rows: list[_Options | _Objective] = []
    chosen = {result.number: set_up(result) for result in trials}
    for key, options in searched(findings, trials).items():
        rows.append(_Options(key, options, chosen))
    if trials:
        rows += [_Objective(name, findings.study, trials) for name in findings.objectives]
    return rows


def searched(findings: Findings, trials: Sequence[TrialResult]) -> dict[str, list[str]]:
    """Return the keys in which some trials differ, each with its options, the start's first."""
    start = set_up(findings.baseline or trials[0]) if trials else {}
    found: dict[str, set[str]] = {}
    for result in trials:
        for key, option in set_up(result).items():
            found.setdefault(key, set()).add(option)
    return {
        key: _first(start.get(key), options)
        for key, options in found.items()
        if 1 < len(options) <= MOST_OPTIONS
    }


def _first(option: str | None, options: Iterable[str]) -> list[str]:
    """Return options in order, after the one that comes first."""
    return sorted(options, key=lambda one: (one != option, one))


def _notes(title: str, labels: Sequence[tuple[float, str]], place: int) -> list[dict[str, Any]]:
    """Return a row's title above its left end, and its labels below their places."""
    above = {"x": 0, "xanchor": "left", "xshift": -14, "y": place, "yanchor": "bottom", "yshift": 7}
    # Lines pass behind the words.
    clear = {"bgcolor": "var(--paper)", "opacity": 0.92, "borderpad": 1}
    notes = [annotation(f"<b>{html.escape(title)}</b>", "var(--ink)") | above | clear]
    for at, text in labels:
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
