"""A study's end on the terminal: the front as a table, what became of the others, where to look.

Plain where the output is not a terminal: the same columns, no colour, no box characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsweep.findings.answers import answers
from memsweep.findings.find import Findings, find
from memsweep.findings.gains import baseline_gains, brief_text
from memsweep.findings.intervals import n_runs
from memsweep.findings.refusals import refusals
from memsweep.findings.views import View, change_words, view
from memsweep.findings.words import (
    SHOWN_NUMBERS,
    caution,
    counts_text,
    name_text,
    numbers_text,
    remarks_text,
    tie_text,
    trials_text,
)
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult

SHOWN_REASONS = 12
"""Reasons that are printed; the report has them all."""

MARK = "*"
"""Behind the number of a trial that has a remark; the remark is below the table."""

PLAIN_COLUMNS = 200
"""Width of the table where the output is not a terminal."""


def print_study(
    results: Sequence[TrialResult],
    study: Study,
    console: Console | None = None,
    places: Iterable[tuple[str, Path | str]] = (),
) -> None:
    """Print what a study found.

    Args:
        results: Its finished trials.
        study: What it set out to do.
        console: Where to; the standard output when None.
        places: What to look at next: name and path or command, e.g. `("report", ...)`.
    """
    console = console or Console(highlight=False)
    findings = find(results, study)
    console.print()
    fronts = shown_fronts(findings)
    for shown in fronts:
        if console.is_terminal:
            console.print(front_table(findings, shown))
        else:
            # A pipe has no width to fit into: wrapping there only hinders whoever reads or greps it.
            wide = Console(file=console.file, width=PLAIN_COLUMNS, highlight=False, color_system=None)
            table = front_table(findings, shown, is_plain=True)
            console.print(Text(str(table.title)), soft_wrap=True)
            table.title = None
            wide.print(table)
            console.print()
    if not fronts:
        console.print(Text("No trial was measured that meets every demand.", style="bold red"))
    for line in belief_lines(findings):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(outcome_line(findings)), soft_wrap=True)
    for line in refusal_lines(findings):
        console.print(Text(f"  {line}"), soft_wrap=True)
    for answer in answers(findings):
        same = " (the baseline itself)" if findings.is_baseline(answer.result) else ""
        sentence = f"{answer.title}, {answer.condition}: {findings.sentence(answer.result)}{same}"
        console.print(Text(sentence), soft_wrap=True)
        console.print(Text(f"  {answer.result.command}"), soft_wrap=True)
    for name, place in places:
        console.print(Text(f"{name}: {place}"), soft_wrap=True)


def shown_fronts(findings: Findings) -> tuple[View, ...]:
    """Return what is shown: the front of what trains the same first, then that of everything; each once."""
    same, everything = view(findings, ()), view(findings, change_words(findings))
    different = everything if everything.front != same.front else None
    return tuple(one for one in (same, different) if one is not None and one.front)


def front_table(findings: Findings, shown: View, *, is_plain: bool = False) -> Table:
    """Return the Pareto front of a view as a table, with the baseline's multiples, by what it changes."""
    words = [word for result in shown.front for word in result.label.split(" ")]
    compared = [baseline_gains(findings, result) for result in shown.front]
    notes = ["x: times the baseline"] if findings.baseline is not None else []
    if any(gain.is_doubtful for gains in compared for gain in gains.values()):
        notes.append("?: unsure")
    if any(findings.interval(result, name) for result in shown.front for name in findings.objectives):
        notes.append("\N{PLUS-MINUS SIGN}: 95 % interval")
    said = f" ({', '.join(notes)})" if notes else ""
    title = f"Pareto front of {findings.study.name}{_what(shown)}: {trials_text(len(shown.front))}{said}"
    table = Table(
        title=Text(title, style="bold"),  # a plain string would be read as markup, as links too
        title_justify="left",
        box=None if is_plain else box.SIMPLE_HEAD,
        padding=(0, 2 if is_plain else 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("set-up", overflow="fold", min_width=min(24, max(map(len, words), default=0)))
    for name in findings.objectives:
        table.add_column(Text(name_text(name)), justify="right", no_wrap=True)
    table.add_column("kept", justify="right", no_wrap=True)
    table.add_column("changes", overflow="fold", min_width=9)
    if shown.tied:
        table.add_column("tied with", overflow="fold")
    for result in sorted(shown.front, key=lambda result: (len(result.changes), result.changes)):
        table.add_row(*_row(findings, shown, result, " " if is_plain else "\n"))
    return table


def _what(shown: View) -> str:
    """Return which set-ups a table is about: ` among set-ups that train exactly what the baseline trains`."""
    if shown.accepted:
        return ", whatever set-ups change"
    is_all = not any(result.choice for result in shown.front)  # an app without techniques has no other
    return "" if is_all else " among set-ups that train exactly what the baseline trains"


def _row(findings: Findings, shown: View, result: TrialResult, separator: str) -> list[str | Text]:
    cells: list[str | Text] = [f"{result.number}{MARK if result.remarks else ''}", Text(result.label)]
    compared = baseline_gains(findings, result)
    for name in findings.objectives:
        gain = f"{separator}({brief_text(compared[name])})" if name in compared else ""
        cells.append(Text(findings.figure(result, name) + gain))
    kept = findings.kept_share(result)
    cells.append("" if kept is None else f"{kept:.0%}")
    cells.append(Text(", ".join(result.changes).replace("_", " ") or "nothing"))
    if shown.tied:
        cells.append(", ".join(map(str, shown.tied.get(result.number, ()))))
    return cells


def belief_lines(findings: Findings) -> list[str]:
    """Return how far the fronts are to be believed: who might be on them too, runs, remarks, a caution."""
    lines, fronts = [], shown_fronts(findings)
    for shown in fronts:
        if shown.contenders:
            first = list(shown.contenders.items())[:SHOWN_NUMBERS]
            texts = [f"{number} ({tie_text(others)})" for number, others in first]
            more = len(shown.contenders) - len(first)
            left = f" and {more} more" if more else ""
            which = f" (the front{_what(shown)})" if len(fronts) > 1 else ""
            lines.append(f"Might as well be on it{which}: {', '.join(texts)}{left}")
    members = {result.number: result for shown in fronts for result in shown.front}.values()
    runs = [f"{result.number} ({n_runs(result)})" for result in members if n_runs(result) > 1]
    if runs:
        lines.append(f"Medians over several runs: {', '.join(runs)}")
    lines += [f"{MARK} trial {result.number}: {remarks_text(result)}" for result in members if result.remarks]
    if fronts and caution(findings.study):
        lines.append(caution(findings.study))
    return lines


def outcome_line(findings: Findings) -> str:
    """Return how many trials there were and how they ended: `24 trials: 19 measured, 5 out of memory`."""
    counts = counts_text(findings.counts())
    infeasible = sum(1 for result in findings.measured if not result.feasible)
    missed = f"; {infeasible} of the measured meet not every demand" if infeasible else ""
    return f"{trials_text(len(findings.results))}: {counts or 'none finished'}{missed}"


def refusal_lines(findings: Findings) -> list[str]:
    """Return why trials have no figures, or miss a demand: one line a reason, the most frequent first."""
    found = refusals(findings)
    lines = [
        f"{numbers_text([result.number for result in refusal.results])}: {refusal.reason}"
        for refusal in found[:SHOWN_REASONS]
    ]
    if len(found) > SHOWN_REASONS:
        lines.append(f"and {len(found) - SHOWN_REASONS} more reasons: see the report")
    return lines


def print_rows(header: Sequence[str], rows: Iterable[Sequence[str]], console: Console | None = None) -> None:
    """Print a table of plain texts; columns share the terminal's width."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_COLUMNS, highlight=False, color_system=None)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain texts as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
