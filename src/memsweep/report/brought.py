"""What choices bring, as tables with a picture in each cell: the ladder, effects, interactions.

A cell shows a factor on a logarithmic axis: a bar reaches from 1, in the middle, to the factor, and the line
through its end is the interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import log

from memsweep.findings.effects import Effects, effects
from memsweep.findings.gains import Gain, Gains, gain_text
from memsweep.findings.ladder import Ladder, Part, ladder
from memsweep.findings.words import changes_text, name_text
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.report.sheet import Sheet, chips, trial_link
from memsweep.report.tables import table

LEAST_EXTENT = log(1.1)
"""An axis reaches at least this far to either side, so that noise looks small."""


def ladder_section(sheet: Sheet) -> list[str]:
    """Return the ladder to the best combination of each view; nothing without one."""
    numbers: dict[int, list[int]] = {}
    ladders: dict[int, Ladder] = {}
    for number, view in enumerate(sheet.shown):
        found = ladder(sheet.findings, view.front)
        if found is not None and found.parts:
            ladders[found.top.number] = found
            numbers.setdefault(found.top.number, []).append(number)
    if not ladders:
        return []
    start = "the baseline" if sheet.findings.baseline is not None else "the first trial"
    parts = [
        "<h2 id='ladder'>What each choice brings</h2>",
        f'<p class="faint">Step by step from {start} to the best combination (the largest product of gains), '
        "then each choice alone and on top of all the others. Only what was run is here; brackets hold "
        "95&nbsp;% intervals.</p>",
    ]
    for number, found in ladders.items():
        only_in = sheet.only_in(numbers[number])
        parts.append(f"<div{only_in}>{_climb(sheet, found)}{_parts(sheet, found)}</div>")
    return parts


def _climb(sheet: Sheet, found: Ladder) -> str:
    names = sheet.findings.objectives
    extents = _extents(names, [rung.gains for rung in found.rungs])
    label = "baseline" if sheet.findings.baseline is not None else found.start.label
    rows = [_rung(sheet, found.start, chips([label]), "start", {}, {}, extents)]
    for index, rung in enumerate(found.rungs, start=1):
        together = "<small>no trial lies between</small>" if len(rung.adds) > 1 else ""
        changed = f"<small>{escape(changes_text(rung.result.changes))}</small>" if rung.result.changes else ""
        steps = rung.steps if index > 1 else {}  # the first step is all there is so far
        adds = f"+ {chips(rung.adds)}{together}{changed}"
        rows.append(_rung(sheet, rung.result, adds, str(index), rung.gains, steps, extents))
    if not found.rungs:
        return "<p>No combination that was measured brings more, all objectives together, than the start.</p>"
    head = f'<th>step</th><th>adds</th>{_heads(names)}<th class="number">trial</th>'
    return table(head, f"<tbody>{''.join(rows)}</tbody>")


def _rung(
    sheet: Sheet,
    result: TrialResult,
    adds: str,
    step: str,
    all_gains: Gains,
    steps: Gains,
    extents: list[float],
) -> str:
    cells = []
    for name, extent in zip(sheet.findings.objectives, extents, strict=True):
        own = f'<span class="value">{escape(sheet.findings.figure(result, name))}</span>'
        step_text = f'<span class="ratio">this step {gain_text(steps[name])}</span>' if name in steps else ""
        cells.append(_cell(sheet, name, all_gains.get(name), extent, own, step_text))
    return (
        f'<tr><td data-label="step">{step}</td><td class="set-up">{adds}</td>{"".join(cells)}'
        f'<td class="number" data-label="trial">{trial_link(result.number)}</td></tr>'
    )


def _parts(sheet: Sheet, found: Ladder) -> str:
    names = sheet.findings.objectives
    alone = _extents(names, [part.alone_gains for part in found.parts])
    top = _extents(names, [part.top_gains for part in found.parts])
    rows = []
    for part in found.parts:
        changes = part.alone.changes if part.alone is not None else ()
        note = f"<small>{escape(changes_text(changes))}</small>" if changes else ""
        rows.append(
            f'<tr><td class="set-up">{chips([part.choice])}{note}</td>'
            f"{_columns(sheet, part.alone, part.alone_gains, alone, 'alone')}{_on_top(sheet, part, top)}</tr>"
        )
    n = len(names)
    head = (
        f'<th rowspan="2">choice</th><th colspan="{n}">alone</th>'
        f'<th colspan="{n}">on top of the rest of the best combination</th></tr><tr>{2 * _heads(names)}'
    )
    return table(head, f"<tbody>{''.join(rows)}</tbody>")


def _on_top(sheet: Sheet, part: Part, extents: list[float]) -> str:
    if not part.is_in_top:
        return f'<td class="faint" colspan="{len(extents)}" data-label="on top">not in it</td>'
    return _columns(sheet, part.without, part.top_gains, extents, "on top")


def _columns(sheet: Sheet, result: TrialResult | None, gains: Gains, extents: list[float], label: str) -> str:
    """Return a cell an objective, or one that says why there are none."""
    if gains:
        names = sheet.findings.objectives
        return "".join(
            _cell(sheet, name, gains.get(name), extent, "", "", f"{label}, {name_text(name)}")
            for name, extent in zip(names, extents, strict=True)
        )
    if result is None:
        said = "not run"
    else:
        reason = sheet.reasons[result.number] or result.outcome.text
        said = f"{trial_link(result.number, f'trial {result.number}')}: {escape(reason)}"
    return f'<td class="faint" colspan="{len(extents)}" data-label="{label}">{said}</td>'


def effects_section(sheet: Sheet) -> list[str]:
    """Return what choices do over all trials, and which interact; nothing with too few trials."""
    found = effects(sheet.findings)
    if found is None:
        return []
    names = sheet.findings.objectives
    extents = _extents(names, [effect.gains for effect in found.effects])
    rows = []
    for effect in found.effects:
        cells = _gain_cells(sheet, effect.gains, extents)
        if not effect.gains:
            cells = f'<td class="faint" colspan="{len(names)}">cannot be told from other choices</td>'
        rows.append(
            f'<tr><td class="set-up">{chips([effect.choice])}'
            f"<small>instead of {escape(effect.against)}</small></td>{cells}"
            f'<td class="number" data-label="trials with it">{effect.n_trials}</td></tr>'
        )
    head = f'<th>choice</th>{_heads(names)}<th class="number">trials with it</th>'
    return [
        "<h2 id='effects'>What each choice does over all trials</h2>",
        f'<p class="faint">{_model_text(found)}</p>',
        table(head, f"<tbody>{''.join(rows)}</tbody>"),
        *_interactions(sheet, found),
    ]


def _model_text(found: Effects) -> str:
    off = [f"{name_text(name)} within a factor of {factor:.2f}" for name, factor in found.spreads.items()]
    fits = f" It tells {' and '.join(off)}, typically." if off else " They are too few to say how well."
    left_out = f" Too many values for an effect each: {', '.join(found.left_out)}." if found.left_out else ""
    return escape(
        f"The factor by which a choice multiplies each objective wherever it is made, fitted to the "
        f"{found.n_trials} measured trials at once, those with other changes among them.{fits}{left_out}"
    )


def _interactions(sheet: Sheet, found: Effects) -> list[str]:
    title = "<h3>Choices that interact</h3>"
    if not found.interactions:
        n = found.n_pairs
        said = (
            f"Of {n} pairs that were looked at, none is known to."
            if n
            else "Too few trials have two choices together to tell."
        )
        return [title, f'<p class="faint">{said}</p>']
    names = sheet.findings.objectives
    extents = _extents(names, [pair.gains for pair in found.interactions])
    rows = []
    for pair in found.interactions:
        cells = _gain_cells(sheet, pair.gains, extents)
        rows.append(
            f'<tr><td class="set-up">{chips(pair.choices)}</td>{cells}'
            f'<td class="number" data-label="trials with both">{pair.n_trials}</td></tr>'
        )
    head = f'<th>together</th>{_heads(names)}<th class="number">trials with both</th>'
    return [
        title,
        f'<p class="faint">Together they give this many times what the two factors above promise. '
        f"{found.n_pairs} pairs were looked at: about one in twenty would seem to interact by chance.</p>",
        table(head, f"<tbody>{''.join(rows)}</tbody>"),
    ]


def _heads(names: Sequence[str]) -> str:
    return "".join(f'<th class="gain">{escape(name_text(name))}</th>' for name in names)


def _extents(names: Sequence[str], rows: Iterable[Gains]) -> list[float]:
    """Return how far the axis of each objective reaches: to the furthest factor, a long interval is cut."""
    rows = list(rows)
    return [
        max([LEAST_EXTENT, *(1.25 * abs(log(gains[name].ratio)) for gains in rows if name in gains)])
        for name in names
    ]


def _gain_cells(sheet: Sheet, gains: Gains, extents: Sequence[float]) -> str:
    """Return a cell for each objective, in their order."""
    names = sheet.findings.objectives
    return "".join(
        _cell(sheet, name, gains.get(name), extent, "", "")
        for name, extent in zip(names, extents, strict=True)
    )


def _cell(
    sheet: Sheet, name: str, gain: Gain | None, extent: float, before: str, after: str, label: str = ""
) -> str:
    label = escape(label or name_text(name))
    if gain is None:
        return f'<td class="gain" data-label="{label}">{before}{after}</td>'
    text = f'{before}<span class="factor">{gain_text(gain)}</span>{after}'
    return f'<td class="gain" data-label="{label}">{text}{_whisker(sheet, name, gain, extent)}</td>'


def _whisker(sheet: Sheet, name: str, gain: Gain, extent: float) -> str:
    def place(factor: float) -> str:
        return f"{50 + 50 * max(-1.0, min(1.0, log(factor) / extent)):.1f}%"

    is_better = (gain.ratio > 1) == (sheet.findings.study.objectives[name] is Direction.MAXIMIZE)
    style = "unsure" if not gain.is_sure else "better" if is_better else "worse"
    low, high = gain.interval or (gain.ratio, gain.ratio)
    return (
        f'<svg class="whisker {style}" aria-hidden="true">'
        '<line class="track" x1="0" x2="100%" y1="50%" y2="50%"/>'
        '<line class="one" x1="50%" x2="50%" y1="0" y2="100%"/>'
        f'<line class="reach" x1="50%" x2="{place(gain.ratio)}" y1="50%" y2="50%"/>'
        f'<line x1="{place(low)}" x2="{place(high)}" y1="50%" y2="50%"/>'
        f'<circle cx="{place(gain.ratio)}" cy="50%" r="4"/></svg>'
    )
