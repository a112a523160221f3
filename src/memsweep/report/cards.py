"""The page's answers: one card a question, each with its figures and its command."""

from __future__ import annotations

from html import escape

from memsweep.findings.answers import answers_among, cost_text
from memsweep.findings.gains import comparison
from memsweep.findings.words import changes_text, remarks_text
from memsweep.record.trial import TrialResult
from memsweep.report.sheet import Sheet, choice, command


def answer_cards(sheet: Sheet) -> str:
    """Return what the baseline costs, and the answers of every view."""
    numbers: dict[tuple[int, str, int], list[int]] = {}
    trials = {result.number: result for result in sheet.findings.results}
    for number, view in enumerate(sheet.shown):
        for place, answer in enumerate(answers_among(view, sheet.findings)):
            numbers.setdefault((place, answer.title, answer.result.number), []).append(number)
    cards = [_baseline(sheet)]
    for (_, title, trial), found in sorted(numbers.items()):
        cards.append(_answer(sheet, title, trials[trial], found))
    return f'<div class="answers">{"".join(cards)}{_nothing(sheet)}</div>'


def _answer(sheet: Sheet, title: str, result: TrialResult, numbers: list[int]) -> str:
    compared = comparison(sheet.findings, result)
    changes = changes_text(result.changes)
    return _card(sheet, title, changes, result, f'<p class="compared">{escape(compared)}</p>', numbers)


def _baseline(sheet: Sheet) -> str:
    findings = sheet.findings
    if findings.baseline is None:
        lost = next(
            (r for r in findings.results if r.choice and set(r.choice.values()) == {"baseline"}), None
        )
        if lost is None:
            return ""
        return (
            '<div class="answer"><h3>The baseline</h3><p class="condition">What you have without asking</p>'
            f'<p class="bad">{escape(sheet.reasons[lost.number] or lost.outcome.text)}</p>'
            f"{command(lost.command)}</div>"
        )
    texts = {number: cost_text(findings, view) for number, view in enumerate(sheet.shown)}
    costs = sheet.by_view(texts, "p", "compared")
    result = findings.baseline
    if not result.feasible:
        costs += f'<p class="bad">{escape(sheet.reasons[result.number])}</p>'
    return _card(sheet, "What the baseline costs", "What you have without asking", result, costs)


def _card(
    sheet: Sheet,
    title: str,
    condition: str,
    result: TrialResult,
    compared: str,
    numbers: list[int] | None = None,
) -> str:
    only_in = "" if numbers is None else sheet.only_in(numbers)
    findings = sheet.findings
    figures = "".join(
        f"<span>{escape(findings.figure(result, name))}</span> " for name in findings.objectives
    )
    remarks = f'<p class="remark">{escape(remarks_text(result))}</p>' if result.remarks else ""
    return (
        f'<div class="answer"{only_in}><h3>{escape(title)}</h3><p class="condition">{escape(condition)}</p>'
        f'<p class="figures">{figures}</p>{compared}{remarks}'
        f'<p class="choice">{choice(result)}</p>{command(result.command)}</div>'
    )


def _nothing(sheet: Sheet) -> str:
    """Return what stands in place of answers where nothing is on offer."""
    empty = sheet.where(lambda view: not view.front)
    if not empty:
        return ""
    others = len(sheet.shown[-1].front)
    more = (
        "Set-ups that change more do: pick them above."
        if others
        else "The table of every trial says what each one missed."
    )
    return (
        f'<div class="answer"{sheet.only_in(empty)}><h3>Nothing is on offer</h3>'
        f"<p>No trial that is compared here meets every demand. {more}</p></div>"
    )
