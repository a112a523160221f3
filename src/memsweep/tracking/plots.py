"""Pictures of a study for W&B, in the form plotly draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memsweep.findings.effects import Effect, effects
from memsweep.findings.find import Findings
from memsweep.findings.parallel import Row, choices, objectives
from memsweep.findings.words import name_text

ABSENT, BEYOND = "(none)", 1.15
"""What stands where a trial has no such key, and where: beyond all that have one."""

SHOWN_EFFECTS = 30
"""Choices that are drawn; more have no room for their names."""


def parallel_coordinates(findings: Findings) -> Any:
    """Return one line a measured trial across everything that was chosen, and the objectives.

    None where there is nothing to compare: fewer than two trials, or one set-up.
    """
    chosen = choices(findings)
    if not chosen:
        return None
    import plotly.graph_objects as go  # 0.2 s, at the end of a study only

    numbers = [result.number for result in findings.measured]
    figures = [
        {"label": row.title, "values": [row.values[n] for n in numbers]} for row in objectives(findings)
    ]
    lines = {"color": figures[0]["values"], "colorscale": "Viridis", "showscale": True}
    return go.Figure(
        go.Parcoords(dimensions=[*(_axis(row, numbers) for row in chosen), *figures], line=lines)
    )


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


def _axis(row: Row, numbers: Sequence[int]) -> dict[str, Any]:
    """Return a row as plotly's axis: of numbers where every trial has one, else of labels."""
    if row.is_numeric and all(number in row.values for number in numbers):
        return {"label": row.title, "values": [row.values[number] for number in numbers]}
    ticks = (*row.ticks, *([(BEYOND, ABSENT)] if any(number not in row.places for number in numbers) else []))
    return {
        "label": row.title,
        "values": [row.places.get(number, BEYOND) for number in numbers],
        "tickvals": [place for place, _ in ticks],
        "ticktext": [text for _, text in ticks],
    }
