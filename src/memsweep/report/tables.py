"""A study's tables as HTML: the front, every trial, what was not measured, what was refused, the time.

Every text that comes from a study passes `escape`; nothing here is trusted to be harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from memsweep.findings.gains import baseline_gains, brief_text
from memsweep.findings.refusals import refusals
from memsweep.findings.spent import spent
from memsweep.findings.words import (
    OUTCOMES,
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
from memsweep.report.scatter import SYMBOLS
from memsweep.report.sheet import COLORS, Sheet, choice, color_of, command, trial_link
from memsweep.units import seconds_text

GLYPHS = {
    "solid": "\N{EM DASH}",
    "circle": "\N{BLACK CIRCLE}",
    "diamond": "\N{BLACK DIAMOND}",
    "square": "\N{BLACK SQUARE}",
    "triangle-up": "\N{BLACK UP-POINTING TRIANGLE}",
    "star": "\N{BLACK STAR}",
    "hexagon": "\N{BLACK HEXAGON}",
    "x-thin": "\N{MULTIPLICATION SIGN}",
}
"""Plotly's dashes and symbols as characters."""

ROWS_A_PAGE = 50
"""Rows of the table of every trial that are shown at once; page.js has it too, and turns the pages."""

SHOWN_TRIALS = 12
"""Trials that are named for one reason, or stand beside the picture, before the rest is folded."""


def table(head: str, *bodies: str) -> str:
    """Return a table that scrolls by itself where it is too wide."""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>{"".join(bodies)}</table></div>'


def heads(sheet: Sheet) -> str:
    """Return the heads of the objectives' columns."""
    return "".join(f'<th class="number">{escape(name_text(name))}</th>' for name in sheet.findings.objectives)


def front_table(sheet: Sheet) -> str:
    """Return the front of every view, grouped by what the set-ups change; colours are the picture's."""
    findings = sheet.findings
    members: dict[int, list[int]] = {}
    for number, view in enumerate(sheet.shown):
        for result in view.front:
            members.setdefault(result.number, []).append(number)
    bodies = []
    for index, kind in enumerate(findings.kinds()):
        own = [result for result in findings.measured if result.changes == kind and result.number in members]
        if own:
            own.sort(key=lambda result: (findings.study.losses([result])[0], result.number))
            bodies.append(_front_group(sheet, index, own, members))
    head = (
        f'<th class="number">trial</th><th>set-up</th>{heads(sheet)}'
        '<th class="number">tokens kept</th><th></th>'
    )
    return table(head, *bodies)


def _front_group(
    sheet: Sheet, index: int, results: list[TrialResult], members: Mapping[int, list[int]]
) -> str:
    glyph = GLYPHS[SYMBOLS[index % len(SYMBOLS)]]
    mark = f'<i style="color:var(--group-{color_of(index)})" aria-hidden="true">{glyph}</i> '
    n_columns = len(sheet.findings.objectives) + 4
    words = escape(changes_text(results[0].changes))
    head = f'<tr class="group"><th colspan="{n_columns}">{mark}{words}</th></tr>'
    rows = []
    for result in results:
        numbers = members[result.number]
        ties = {number: tie_text(sheet.shown[number].tied.get(result.number, ())) for number in numbers}
        notes = "".join(
            f"<small>{escape(text)}</small>" for text in (runs_text(result), remarks_text(result)) if text
        )
        kept = sheet.findings.kept_share(result)
        rows.append(
            f'<tr data-trial="{result.number}"{sheet.only_in(numbers)}>'
            f'<td class="number" data-label="trial">{trial_link(result.number)}</td>'
            f'<td class="set-up">{choice(result)}{sheet.by_view(ties)}{notes}</td>'
            + "".join(_figure(sheet, result, name) for name in sheet.findings.objectives)
            + f'<td class="number" data-label="tokens kept">{"" if kept is None else f"{kept:.0%}"}</td>'
            f"<td>{_repeat(result)}</td></tr>"
        )
    everywhere = sorted({number for result in results for number in members[result.number]})
    return f"<tbody{sheet.only_in(everywhere)}>{head}{''.join(rows)}</tbody>"


def contenders(sheet: Sheet) -> str:
    """Return which set-ups might as well be on the front, a paragraph a view."""
    found = []
    for number, view in enumerate(sheet.shown):
        trials = [
            f"{trial_link(trial, f'trial {trial}')} ({escape(tie_text(others))})"
            for trial, others in view.contenders.items()
        ]
        if trials:
            more = f" and {len(trials) - SHOWN_TRIALS} more" if len(trials) > SHOWN_TRIALS else ""
            text = f"Might as well be on it: {', '.join(trials[:SHOWN_TRIALS])}{more}."
            found.append(f"<p{sheet.only_in([number])}>{text}</p>")
    return "".join(found)


def _figure(sheet: Sheet, result: TrialResult, name: str) -> str:
    if name not in result.objectives:
        return '<td class="number"></td>'
    findings = sheet.findings
    gain = baseline_gains(findings, result).get(name)
    compared = "" if gain is None else f"{brief_text(gain)} baseline"
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


def trials_table(sheet: Sheet) -> str:
    """Return every trial: how it ended, its figures where there are any, and how to repeat it."""
    rows, n_shown = [], 0
    for result in sheet.findings.results:
        is_shown = n_shown < ROWS_A_PAGE and set(result.changes) <= set(sheet.shown[sheet.first].accepted)
        n_shown += is_shown
        hidden = "" if is_shown else " hidden"
        rows.append(
            f'<tr id="trial-{result.number}" data-trial="{result.number}"{hidden}>'
            f'<td class="number" data-label="trial">{result.number}</td>'
            f'<td data-label="outcome">{escape(outcome_text(result))}</td>'
            f'<td class="set-up">{choice(result)}</td>'
            + "".join(_figure(sheet, result, name) for name in sheet.findings.objectives)
            + f'<td class="reason">{escape(_notes(sheet, result))}</td><td>{_repeat(result)}</td></tr>'
        )
    sortable = "".join(
        f'<th class="number"><button type="button" data-sort="{index}">'
        f"{escape(name_text(name))}</button></th>"
        for index, name in enumerate(sheet.findings.objectives)
    )
    head = (
        '<th class="number"><button type="button" data-sort="">trial</button></th><th>outcome</th>'
        f"<th>set-up</th>{sortable}<th>remarks</th><th></th>"
    )
    pages = (
        '<p class="pages" hidden><button type="button" data-step="-1">earlier</button> '
        '<span></span> <button type="button" data-step="1">later</button></p>'
    )
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f'<div id="trials">{table(head, body)}{pages}</div>'


def _notes(sheet: Sheet, result: TrialResult) -> str:
    """Return why a trial is not on offer, what it changes, and how far to believe its figures."""
    changes = changes_text(result.changes).lower() if result.changes else ""
    notes = (sheet.reasons[result.number], changes, runs_text(result), remarks_text(result))
    return "; ".join(text for text in notes if text)


def unmeasured_strip(sheet: Sheet) -> str:
    """Return the trials that have no point in the picture, by how they ended: they stand beside it."""
    by_outcome: dict[str, list[TrialResult]] = {}
    for result in sheet.findings.unmeasured:
        by_outcome.setdefault(outcome_text(result), []).append(result)
    lines = []
    for outcome, results in by_outcome.items():
        marks = [
            f'<button type="button" class="mark" data-pick="{result.number}" data-trial="{result.number}" '
            f'title="{escape(result.outcome.text)}">{result.number}</button>'
            for result in results
        ]
        shown, rest = marks[:SHOWN_TRIALS], marks[SHOWN_TRIALS:]
        folded = f"<details><summary>{len(rest)} more</summary>{''.join(rest)}</details>" if rest else ""
        lines.append(f"<div><dt>{escape(outcome)}</dt><dd>{''.join(shown)}{folded}</dd></div>")
    if not lines:
        return ""
    title = "<p>No figures, so no place in the picture; pick one for the reason:</p>"
    return f'<div class="strip">{title}<dl>{"".join(lines)}</dl></div>'


def refusals_table(sheet: Sheet) -> str:
    """Return every reason why trials are not on offer, with the trials that it holds for; empty for none."""
    rows = []
    for refusal in refusals(sheet.findings):
        links = [trial_link(result.number) for result in refusal.results]
        named, rest = ", ".join(links[:SHOWN_TRIALS]), links[SHOWN_TRIALS:]
        if rest:
            named += f"<details><summary>{len(rest)} more</summary>{', '.join(rest)}</details>"
        rows.append(
            f'<tr><td data-label="how it ended">{escape(refusal.how)}</td>'
            f'<td class="reason">{escape(refusal.reason)}</td>'
            f'<td class="number" data-label="how many">{len(links)}</td>'
            f'<td data-label="trials">{named}</td></tr>'
        )
    if not rows:
        return ""
    head = '<th>how it ended</th><th>why</th><th class="number">how many</th><th>trials</th>'
    return table(head, f"<tbody>{''.join(rows)}</tbody>")


def legend(traces: Iterable[Mapping[str, Any]]) -> str:
    """Return what the picture's traces mean; page.js hides what is not in the picture.

    Plotly's own legend neither wraps nor fits a phone.
    """
    items, has_line = [], False
    for index, trace in enumerate(traces):
        is_line = trace["mode"] == "lines"
        style = trace["line"] if is_line else trace["marker"]
        color = style.get("color") or style["line"]["color"]
        glyph = GLYPHS["solid" if is_line else style["symbol"]]
        if not is_line or not has_line:
            key = "" if is_line else f' data-trace="{index}"'
            items.append(
                f'<span{key}><i style="color:{color}" aria-hidden="true">{glyph}</i> {trace["name"]}</span>'
            )
        has_line |= is_line
    return f'<div class="legend">{"".join(items)}</div>'


def time_table(sheet: Sheet) -> str:
    """Return where the time of all trials went, as a bar and lists; empty when none was recorded."""
    found = spent(sheet.findings.results)
    if found.total <= 0:
        return ""
    shares = [(PHASES.get(name, name.replace("_", " ")), seconds) for name, seconds in found.phases]
    colors = [f"var(--group-{index % COLORS})" for index in range(len(shares))]
    if found.rest > 0:
        shares.append(("everything else", found.rest))
        colors.append("var(--faint)")
    bar = "".join(
        f'<span style="width:{seconds / found.total:.2%};background:{color}"></span>'
        for (_, seconds), color in zip(shares, colors, strict=True)
    )
    phases = "".join(
        f'<dt><span class="swatch" style="background:{color}"></span>{escape(words)}</dt>'
        f"{_share(seconds, found.total)}"
        for (words, seconds), color in zip(shares, colors, strict=True)
    )
    ends = "".join(
        f"<dt>{escape(OUTCOMES[name])}, {trials_text(n_trials)}</dt>{_share(seconds, found.total)}"
        for name, n_trials, seconds in found.outcomes
    )
    return (
        f'<div class="bar" aria-hidden="true">{bar}</div>'
        f'<div class="columns"><dl>{phases}</dl><dl>{ends}</dl></div>'
    )


def _share(seconds: float, total: float) -> str:
    return f'<dd>{seconds_text(seconds)} <span class="faint">({seconds / total:.0%})</span></dd>'
