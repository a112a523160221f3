"""A study's tables as HTML: the front, every trial, what was not measured, where the time went.

Every text that comes from a study passes `escape`; nothing here is trusted to be harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from memsweep.findings.find import Findings, Group
from memsweep.findings.words import (
    PHASES,
    changes_text,
    name_text,
    outcome_text,
    remarks_text,
    runs_text,
    tie_text,
    trials_text,
)
from memsweep.record.trial import TrialResult
from memsweep.units import seconds_text

GLYPHS = {
    "solid": "\N{EM DASH}",
    "dot": "\N{MIDDLE DOT}" * 3,
    "circle": "\N{BLACK CIRCLE}",
    "diamond": "\N{BLACK DIAMOND}",
    "square": "\N{BLACK SQUARE}",
    "triangle-up": "\N{BLACK UP-POINTING TRIANGLE}",
    "star": "\N{BLACK STAR}",
    "hexagon": "\N{BLACK HEXAGON}",
    "x-thin": "\N{MULTIPLICATION SIGN}",
}
"""Plotly's dashes and symbols as characters."""

OPEN_UP_TO = 8
"""A list of trials with one kind of end is folded when it is longer."""


def command(text: str) -> str:
    """Return a command with a button that copies it."""
    button = '<button type="button" class="copy">copy</button>'
    return f'<div class="command"><code>{escape(text)}</code>{button}</div>'


def choice(result: TrialResult) -> str:
    """Return a trial's choice, one chip a word."""
    return "".join(f'<span class="chip">{escape(word)}</span>' for word in result.label.split(" "))


def front_table(findings: Findings) -> str:
    """Return the front, grouped by what the set-ups change; colours are those of the picture."""
    colors = {kind: index for index, kind in enumerate(findings.kinds())}
    objectives = "".join(f'<th class="number">{escape(name_text(name))}</th>' for name in findings.objectives)
    n_columns = len(findings.objectives) + 4
    body = "".join(_front_group(findings, group, colors, n_columns) for group in findings.groups())
    return (
        '<div class="wide"><table><thead><tr><th class="number">trial</th><th>set-up</th>'
        f'{objectives}<th class="number">tokens kept</th><th></th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _front_group(
    findings: Findings, group: Group, colors: Mapping[tuple[str, ...], int], n_columns: int
) -> str:
    swatch = f'<span class="swatch" style="background:var(--group-{colors[group.changes] % 6})"></span>'
    head = (
        f'<tr class="group"><th colspan="{n_columns}">{swatch}{escape(changes_text(group.changes))}</th></tr>'
    )
    on_front = {result.number for result in findings.front}
    rows = []
    for result in group.results:
        is_beaten = result.number not in on_front
        notes = [
            "beaten by set-ups that change more" if is_beaten else "",
            tie_text((findings.contenders if is_beaten else findings.tied).get(result.number, ())),
            runs_text(result),
            remarks_text(result),
        ]
        note = "".join(f"<small>{escape(text)}</small>" for text in notes if text)
        kept = findings.kept_share(result)
        link = f'<a href="#trial-{result.number}">{result.number}</a>'
        rows.append(
            f'<tr><td class="number" data-label="trial">{link}</td>'
            f'<td class="set-up">{choice(result)}{note}</td>'
            + "".join(_figure(findings, result, name) for name in findings.objectives)
            + f'<td class="number" data-label="tokens kept">{"" if kept is None else f"{kept:.0%}"}</td>'
            f"<td>{_repeat(result)}</td></tr>"
        )
    return head + "".join(rows)


def _figure(findings: Findings, result: TrialResult, name: str) -> str:
    if name not in result.objectives:
        return '<td class="number"></td>'
    ratio = findings.ratio(result, name)
    compared = "" if ratio is None else f"{ratio:.2f} x baseline"
    if findings.is_baseline(result):
        compared = "baseline"
    text = findings.figure(result, name)
    return (
        f'<td class="number value" data-label="{escape(name_text(name))}">{escape(text)}'
        + (f' <span class="ratio">{compared}</span>' if compared else "")
        + "</td>"
    )


def _repeat(result: TrialResult) -> str:
    return f"<details><summary>repeat it</summary>{command(result.command)}</details>"


def trials_table(findings: Findings, reasons: Mapping[int, str]) -> str:
    """Return every trial: how it ended, its figures where there are any, and how to repeat it."""
    objectives = "".join(f'<th class="number">{escape(name_text(name))}</th>' for name in findings.objectives)
    on_front = {result.number for result in findings.front}
    rows = []
    for result in findings.results:
        style = ' class="on-front"' if result.number in on_front else ""
        outcome = "on the front" if result.number in on_front else outcome_text(result)
        rows.append(
            f'<tr id="trial-{result.number}"{style}>'
            f'<td class="number" data-label="trial">{result.number}</td>'
            f'<td data-label="outcome">{escape(outcome)}</td><td class="set-up">{choice(result)}</td>'
            + "".join(_figure(findings, result, name) for name in findings.objectives)
            + f'<td class="reason">{escape(reasons[result.number])}</td><td>{_repeat(result)}</td></tr>'
        )
    return (
        '<div class="wide"><table><thead><tr><th class="number">trial</th><th>outcome</th><th>set-up</th>'
        f"{objectives}<th>reason</th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _notes(findings: Findings, result: TrialResult, reasons: Mapping[int, str]) -> str:
    """Return why a trial is not on offer, or might be on the front, and how far to believe its figures."""
    contends = tie_text(findings.contenders.get(result.number, ()))
    might = f"might as well be on the front: {contends}" if contends else ""
    notes = (reasons[result.number], might, runs_text(result), remarks_text(result))
    return "; ".join(text for text in notes if text)


def unmeasured_list(results: Iterable[TrialResult]) -> str:
    """Return the trials that have no point in the picture, by how they ended, each with its reason."""
    by_outcome: dict[str, list[TrialResult]] = {}
    for result in results:
        by_outcome.setdefault(outcome_text(result), []).append(result)
    parts = []
    for outcome, members in by_outcome.items():
        items = "".join(
            f'<li><a href="#trial-{result.number}">trial {result.number}</a> '
            f"{escape(result.outcome.text)}<br>{choice(result)}</li>"
            for result in members
        )
        is_open = " open" if len(members) <= OPEN_UP_TO else ""
        summary = f"<summary>{escape(outcome)}: {trials_text(len(members))}</summary>"
        parts.append(f'<details class="unmeasured"{is_open}>{summary}<ul>{items}</ul></details>')
    return "".join(parts)


def legend(traces: Iterable[Mapping[str, Any]]) -> str:
    """Return what the picture's traces mean, each with a box that hides and shows it.

    Plotly's own legend neither wraps nor fits a phone.
    """
    items = []
    for index, trace in enumerate(traces):
        is_line = trace["mode"] == "lines"
        style = trace["line"] if is_line else trace["marker"]
        color = style.get("color") or style["line"]["color"]
        glyph = GLYPHS[style["dash"] if is_line else style["symbol"]]
        items.append(
            f'<label><input type="checkbox" checked data-trace="{index}">'
            f'<span style="color:{color}" aria-hidden="true">{glyph}</span> {trace["name"]}</label>'
        )
    return f'<div class="legend">{"".join(items)}</div>'


def time_table(results: Iterable[TrialResult]) -> str:
    """Return where the time of all trials went, as a bar and a list; empty when none was recorded."""
    spent: dict[str, float] = {}
    total = 0.0
    for result in results:
        phases = {name: seconds for name, seconds in result.seconds.items() if name != "total"}
        for name, seconds in phases.items():
            spent[name] = spent.get(name, 0.0) + seconds
        total += max(result.seconds.get("total", 0.0), sum(phases.values()))
    if total <= 0:
        return ""
    order = {name: index for index, name in enumerate(PHASES)}
    names = sorted(spent, key=lambda name: (order.get(name, len(order)), name))
    shares = [(PHASES.get(name, name.replace("_", " ")), spent[name]) for name in names if spent[name] > 0]
    colors = [f"var(--group-{index % 6})" for index in range(len(shares))]
    rest = total - sum(spent.values())
    if rest > 0:
        shares.append(("everything else", rest))
        colors.append("var(--faint)")
    bar = "".join(
        f'<span style="width:{seconds / total:.2%};background:{color}"></span>'
        for (_, seconds), color in zip(shares, colors, strict=True)
    )
    rows = "".join(
        f'<dt><span class="swatch" style="background:{color}"></span>{escape(words)}</dt>'
        f'<dd>{seconds_text(seconds)} <span class="faint">({seconds / total:.0%})</span></dd>'
        for (words, seconds), color in zip(shares, colors, strict=True)
    )
    return f'<div class="bar" aria-hidden="true">{bar}</div><dl>{rows}</dl>'


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Return names and texts as a definition list; empty texts are left out."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    return f"<dl>{rows}</dl>"
