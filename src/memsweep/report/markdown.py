"""The report as Markdown, to be pasted into a pull request or a README: answers, front, ladder, refusals."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from memsweep.findings.answers import answers, cost_text
from memsweep.findings.find import Findings
from memsweep.findings.gains import Gains, gain_text
from memsweep.findings.ladder import Ladder, Part, ladder
from memsweep.findings.refusals import refusals
from memsweep.findings.views import change_words, view
from memsweep.findings.words import (
    caution,
    constraint_text,
    counts_text,
    name_text,
    numbers_text,
    tie_text,
    trials_text,
)
from memsweep.record.trial import TrialResult
from memsweep.report.text import markdown_table
from memsweep.units import seconds_text

SHOWN_REASONS = 20
"""Reasons that are listed; report.html has them all."""


def markdown(findings: Findings, pictures: Collection[str] = ()) -> str:
    """Return the report as Markdown.

    Args:
        findings: What to show.
        pictures: Paths of the pictures, from where the text will be; those of other names are left out.
    """
    blocks = [
        f"# {_plain(findings.study.name)}",
        *_lead(findings),
        *_answers(findings),
        *_front(findings, pictures),
        *_ladders(findings, pictures),
        *_effects(pictures),
        *_refused(findings),
        *_measured(findings),
    ]
    return "\n\n".join(blocks) + "\n"


def _lead(findings: Findings) -> Iterator[str]:
    total = sum(result.seconds.get("total", 0.0) for result in findings.results)
    took = f" in {seconds_text(total)} of trial time" if total else ""
    context = ", ".join(f"{name} {value}" for name, value in findings.study.context.items())
    yield _plain(
        f"{trials_text(len(findings.results))}{took}: {counts_text(findings.counts()) or 'none finished'}."
        + (f" {context[0].upper()}{context[1:]}." if context else "")
    )
    if findings.measured and caution(findings.study):
        yield f"> {_plain(caution(findings.study))}"


def _answers(findings: Findings) -> Iterator[str]:
    yield "## Answers"
    if findings.baseline is not None:
        costs = cost_text(findings, view(findings, ()))
        said = f" {_plain(costs)} without changing what is trained." if costs else ""
        yield f"**What the baseline costs**: {_plain(findings.sentence(findings.baseline))}.{said}"
        yield _command(findings.baseline.command)
    for answer in answers(findings):
        compared = findings.comparison(answer.result)
        yield (
            f"**{_plain(answer.title)}** ({_plain(answer.condition)}): "
            f"{_plain(findings.sentence(answer.result))}" + (f"; {_plain(compared)}." if compared else ".")
        )
        yield _command(answer.result.command)
    if not findings.front:
        yield "No trial was measured that meets every demand."


def _front(findings: Findings, pictures: Collection[str]) -> Iterator[str]:
    if not findings.measured:
        return
    yield "## What is worth having"
    yield from _picture("front", "Every measured set-up, and the Pareto front", pictures)
    demands = [text for text in map(constraint_text, findings.study.constraints.values()) if text]
    if demands:
        yield _plain(f"Demanded: {'; '.join(demands)}.")
    rows = [_front_row(findings, result) for group in findings.groups() for result in group.results]
    if rows:
        yield markdown_table(
            ["trial", "set-up", *map(name_text, findings.objectives), "changes", "tied with"], rows
        )
        yield (
            "The Pareto front, and that of the set-ups which train exactly what the baseline trains. "
            "x: times the baseline; \N{PLUS-MINUS SIGN}: half of the 95 % interval."
        )


def _front_row(findings: Findings, result: TrialResult) -> list[str]:
    figures = []
    for name in findings.objectives:
        ratio = findings.ratio(result, name)
        figures.append(findings.figure(result, name) + ("" if ratio is None else f" ({ratio:.2f} x)"))
    ties = {**findings.tied, **findings.contenders}.get(result.number, ())
    return [
        str(result.number),
        _code(result.label),
        *figures,
        _changes(result),
        tie_text(ties).removeprefix("tied with "),
    ]


def _ladders(findings: Findings, pictures: Collection[str]) -> Iterator[str]:
    found = [ladder(findings, view(findings, accepted).front) for accepted in ((), change_words(findings))]
    different = {one.top.number: one for one in found if one is not None and one.rungs}
    if not different:
        return
    yield "## What each choice brings"
    yield from _picture("ladder", "The ladder from the baseline to the best combination", pictures)
    for one in different.values():
        yield _plain(
            f"To trial {one.top.number}, the best combination of set-ups that change "
            f"{_changes(one.top)} (the largest product of gains), step by step:"
        )
        yield _climb(findings, one)
    yield "Each choice alone, and on top of all the others of the last combination:"
    yield _parts(findings, list(different.values())[-1])


def _climb(findings: Findings, found: Ladder) -> str:
    names = [name_text(name) for name in findings.objectives]
    label = "baseline" if findings.baseline is not None else found.start.label
    rows = [[_code(label), *(findings.figure(found.start, name) for name in findings.objectives), "", ""]]
    for index, rung in enumerate(found.rungs):
        cells = []
        for name in findings.objectives:
            step = f", this step {gain_text(rung.steps[name])}" if name in rung.steps and index else ""
            all_gains = f"{gain_text(rung.gains[name])}{step}" if name in rung.gains else ""
            cells.append(all_gains or findings.figure(rung.result, name))
        adds = " ".join(f"+ {_code(text)}" for text in rung.adds)
        rows.append([adds, *cells, _changes(rung.result), str(rung.result.number)])
    return markdown_table(["step", *names, "changes", "trial"], rows)


def _parts(findings: Findings, found: Ladder) -> str:
    names = [name_text(name) for name in findings.objectives]
    rows = [[_code(part.choice), *_alone(findings, part), *_on_top(findings, part)] for part in found.parts]
    head = ["choice", *(f"{name}, alone" for name in names), *(f"{name}, on top" for name in names)]
    return markdown_table(head, rows)


def _alone(findings: Findings, part: Part) -> list[str]:
    return _cells(findings, part.alone, part.alone_gains)


def _on_top(findings: Findings, part: Part) -> list[str]:
    if not part.is_in_top:
        return ["not in it"] + [""] * (len(findings.objectives) - 1)
    return _cells(findings, part.without, part.top_gains)


def _cells(findings: Findings, result: TrialResult | None, gains: Gains) -> list[str]:
    if gains:
        return [gain_text(gains[name]) if name in gains else "" for name in findings.objectives]
    said = "not run" if result is None else f"trial {result.number}: {_plain(result.outcome.text)}"
    return [said] + [""] * (len(findings.objectives) - 1)


def _effects(pictures: Collection[str]) -> Iterator[str]:
    shown = list(_picture("effects", "The factor of each choice, over all trials", pictures))
    if shown:
        yield "## What each choice does over all trials"
        yield from shown


def _refused(findings: Findings) -> Iterator[str]:
    found = refusals(findings)
    if not found:
        return
    yield "## Refused, and why"
    rows = [
        [one.how, _plain(one.reason), numbers_text([result.number for result in one.results])]
        for one in found[:SHOWN_REASONS]
    ]
    yield markdown_table(["how it ended", "why", "trials"], rows)
    if len(found) > SHOWN_REASONS:
        yield f"And {len(found) - SHOWN_REASONS} more reasons."


def _measured(findings: Findings) -> Iterator[str]:
    study = findings.study
    versions = dict(study.versions)
    for result in findings.results:
        versions.update(result.versions)
    yield "## How this was measured"
    conditions = [f"{name.replace('_', ' ')}: {text}" for name, text in study.conditions.items()]
    versions_text = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    lines = [*conditions, f"versions: {versions_text}" if versions_text else ""]
    yield "\n".join(f"- {_plain(line)}" for line in lines if line)
    yield "The whole study again:"
    yield _command(study.command)


def _changes(result: TrialResult) -> str:
    return _plain(", ".join(result.changes).replace("_", " ") or "nothing")


def _picture(name: str, words: str, pictures: Collection[str]) -> Iterator[str]:
    for path in pictures:
        if path.rsplit("/", 1)[-1] == f"{name}.svg":
            yield f"![{words}]({path})"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """Return text as code within a line."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _command(text: str) -> str:
    """Return a command as a block of its own."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}sh\n{text}\n{fence}"
