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
from memsweep.findings.intervals import n_runs
from memsweep.findings.refusals import refusals
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
    if findings.front:
        if console.is_terminal:
            console.print(front_table(findings))
        else:
            # A pipe has no width to fit into: wrapping there only hinders whoever reads or greps it.
            wide = Console(file=console.file, width=PLAIN_COLUMNS, highlight=False, color_system=None)
            wide.print(front_table(findings, is_plain=True))
    else:
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


def front_table(findings: Findings, *, is_plain: bool = False) -> Table:
    """Return the Pareto front as a table, compared with the baseline and grouped by what it changes."""
    words = [word for result in findings.front for word in result.label.split(" ")]
    notes = ["x: times the baseline"] if findings.baseline is not None else []
    if any(findings.interval(result, name) for result in findings.front for name in findings.objectives):
        notes.append("\N{PLUS-MINUS SIGN}: 95 % interval")
    compared = f" ({', '.join(notes)})" if notes else ""
    table = Table(
        title=f"Pareto front of {findings.study.name}: {trials_text(len(findings.front))}{compared}",
        title_justify="left",
        title_style="bold",
        box=None if is_plain else box.SIMPLE_HEAD,
        padding=(0, 2 if is_plain else 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("set-up", overflow="fold", min_width=min(24, max(map(len, words), default=0)))
    for name in findings.objectives:
        table.add_column(name_text(name), justify="right", no_wrap=True)
    table.add_column("kept", justify="right", no_wrap=True)
    table.add_column("changes", overflow="fold", min_width=9)
    if findings.tied:
        table.add_column("tied with", overflow="fold")
    on_front = {result.number for result in findings.front}
    for group in findings.groups():
        for result in group.results:
            if result.number in on_front:
                table.add_row(*_row(findings, result, " " if is_plain else "\n"))
    return table


def _row(findings: Findings, result: TrialResult, separator: str) -> list[str | Text]:
    cells: list[str | Text] = [f"{result.number}{MARK if result.remarks else ''}", Text(result.label)]
    for name in findings.objectives:
        ratio = findings.ratio(result, name)
        compared = "" if ratio is None else f"{separator}({ratio:.2f} x)"
        cells.append(findings.figure(result, name) + compared)
    kept = findings.kept_share(result)
    cells.append("" if kept is None else f"{kept:.0%}")
    cells.append(", ".join(result.changes).replace("_", " ") or "nothing")
    if findings.tied:
        cells.append(", ".join(map(str, findings.tied.get(result.number, ()))))
    return cells


def belief_lines(findings: Findings) -> list[str]:
    """Return how far the front is to be believed: who might be on it too, runs, remarks, a caution."""
    lines = []
    if findings.contenders:
        shown = list(findings.contenders.items())[:SHOWN_NUMBERS]
        texts = [f"{number} ({tie_text(others)})" for number, others in shown]
        more = len(findings.contenders) - len(shown)
        left = f" and {more} more" if more else ""
        lines.append(f"Might as well be on it: {', '.join(texts)}{left}")
    runs = [f"{result.number} ({n_runs(result)})" for result in findings.front if n_runs(result) > 1]
    if runs:
        lines.append(f"Medians over several runs: {', '.join(runs)}")
    lines += [
        f"{MARK} trial {result.number}: {remarks_text(result)}" for result in findings.front if result.remarks
    ]
    if findings.front and caution(findings.study):
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
