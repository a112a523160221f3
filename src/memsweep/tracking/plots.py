"""Pictures of a study for W&B, in the form plotly draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memsweep.findings.effects import Effect, effects
from memsweep.findings.find import Findings
from memsweep.findings.words import name_text
from memsweep.tracking.content import number, searched

ABSENT = "(none)"
"""What stands where a trial has no such key."""

SHOWN_EFFECTS = 30
"""Choices that are drawn; more have no room for their names."""


def parallel_coordinates(findings: Findings) -> Any:
    """Return one line a measured trial across everything that was chosen, and the objectives.

    None where there is nothing to compare: fewer than two trials, or one set-up.
    """
    results = findings.measured
    chosen = [{**result.choice, **searched(result)} for result in results]
    names = dict.fromkeys(key for choice in chosen for key in choice)
    axes = [_axis(name, [choice.get(name, ABSENT) for choice in chosen]) for name in names]
    varied = [axis for axis in axes if axis is not None]
    if len(results) < 2 or not varied:
        return None
    import plotly.graph_objects as go  # 0.2 s, at the end of a study only

    figures = [
        {"label": name_text(name), "values": [result.objectives[name] for result in results]}
        for name in findings.objectives
    ]
    color = [result.objectives[findings.objectives[0]] for result in results]
    lines = {"color": color, "colorscale": "Viridis", "showscale": True}
    return go.Figure(go.Parcoords(dimensions=[*varied, *figures], line=lines))


def effect_bars(findings: Findings) -> Any:
    """Return what each choice multiplies each objective by, with intervals; None where that is not known."""
    found = effects(findings)
    shown = [effect for effect in found.effects if effect.gains][:SHOWN_EFFECTS] if found is not None else []
    if not shown:
        return None
    import plotly.graph_objects as go

    figure = go.Figure([_bars(name, shown) for name in findings.objectives])
    return figure.update_layout(
        barmode="group",
        xaxis={"type": "log", "title": "times what it is without"},
        yaxis={"autorange": "reversed"},
    )


def _bars(name: str, shown: Sequence[Effect]) -> dict[str, Any]:
    gains = [(effect.choice, effect.gains[name]) for effect in shown if name in effect.gains]
    ends = [gain.interval or (gain.ratio, gain.ratio) for _, gain in gains]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name_text(name),
        "y": [choice for choice, _ in gains],
        "x": [gain.ratio - 1 for _, gain in gains],
        "base": 1,
        "error_x": {
            "symmetric": False,
            "array": [high - gain.ratio for (_, gain), (_, high) in zip(gains, ends, strict=True)],
            "arrayminus": [gain.ratio - low for (_, gain), (low, _) in zip(gains, ends, strict=True)],
        },
    }


def _axis(name: str, values: Sequence[Any]) -> dict[str, Any] | None:
    """Return what was chosen of one thing as an axis; None where it was always the same."""
    if len(set(values)) < 2:
        return None
    if all(isinstance(value, int | float) for value in values):
        return {"label": name, "values": list(values)}
    labels = sorted({str(value) for value in values}, key=_order)
    ticks = {"tickvals": list(range(len(labels))), "ticktext": labels}
    return {"label": name, "values": [labels.index(str(value)) for value in values], **ticks}


def _order(label: str) -> tuple[bool, float, str]:
    """Return what puts numbers first, by their size, and words after them."""
    value = number(label)
    return (isinstance(value, str), 0.0 if isinstance(value, str) else float(value), label)
