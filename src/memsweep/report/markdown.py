"""The report as Markdown, to be pasted into a pull request or a README: answers, front, ladder, refusals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memsweep.findings.answers import answers, cost_text
from memsweep.findings.effects import effects
from memsweep.findings.find import Findings
from memsweep.findings.gains import Gains, baseline_gains, brief_text, comparison, gain_text
from memsweep.findings.ladder import Ladder, Part, ladder
from memsweep.findings.peak import peak_text
from memsweep.findings.refusals import refusals
from memsweep.findings.remarks import notes
from memsweep.findings.views import change_words, view
from memsweep.findings.words import (
    caution,
    constraint_text,
    counts_text,
    name_text,
    numbers_text,
    remarks_text,
    tie_text,
    trials_text,
)
from memsweep.record.trial import TrialResult
from memsweep.report.markup import code, command, plain
from memsweep.report.text import MARK, markdown_table
from memsweep.units import seconds_text

SHOWN_REASONS = 20
"""Reasons that are listed; report.html has them all."""


def markdown(
    findings: Findings,
    pictures: Collection[str] = (),
    recorded: Mapping[str, Any] | None = None,
    parameters: Sequence[str] = (),
) -> str:
    """Return the report as Markdown.

    Args:
        findings: What to show.
        pictures: Paths of the pictures, from where the text will be; those of other names are left out.
        recorded: Facts that the baseline's trial, or else the first measured one, recorded of itself.
        parameters: Options of the fronts with parameters that were not searched.
    """
    blocks = [
        f"# {plain(findings.study.name)}",
        *_lead(findings),
        *_answers(findings),
        *_front(findings, pictures),
        *_meanings(recorded or {}, parameters),
        *_notes(result for group in findings.groups() for result in group.results),
        *_ladders(findings, pictures),
        *_effects(findings, pictures),
        *_refused(findings),
        *_measured(findings),
    ]
    return "\n\n".join(blocks) + "\n"


def _lead(findings: Findings) -> Iterator[str]:
    total = sum(result.seconds.get("total", 0.0) for result in findings.results)
    took = f" in {seconds_text(total)} of trial time" if total else ""
    context = ", ".join(f"{name} {value}" for name, value in findings.study.context.items())
    yield plain(
        f"{trials_text(len(findings.results))}{took}: {counts_text(findings.counts()) or 'none finished'}."
        + (f" {context[0].upper()}{context[1:]}." if context else "")
    )
    if findings.measured and caution(findings.study):
        yield f"> {plain(caution(findings.study))}"


def _answers(findings: Findings) -> Iterator[str]:
    yield "## Answers"
    if findings.baseline is not None:
        costs = cost_text(findings, view(findings, ()))
        said = f" {plain(costs)} without changing what is trained." if costs else ""
        yield f"**What the baseline costs**: {plain(findings.sentence(findings.baseline))}.{said}"
        yield from _belief(findings.baseline)
        yield command(findings.baseline.command)
    for answer in answers(findings):
        compared = comparison(findings, answer.result)
        yield (
            f"**{plain(answer.title)}** ({plain(answer.condition)}): "
            f"{plain(findings.sentence(answer.result))}" + (f"; {plain(compared)}." if compared else ".")
        )
        if not findings.is_baseline(answer.result):
            yield from _belief(answer.result)
        yield command(answer.result.command)
    if not findings.front:
        yield "No trial was measured that meets every demand."


def _belief(result: TrialResult) -> Iterator[str]:
    """Yield what a reader must know before believing an answer's figures."""
    if result.remarks:
        yield f"Before you believe it: {plain(remarks_text(result))}."


def _front(findings: Findings, pictures: Collection[str]) -> Iterator[str]:
    if not findings.measured:
        return
    yield "## What is worth having"
    yield from _picture("front", "Every measured set-up, and the Pareto front", pictures)
    demands = [text for text in map(constraint_text, findings.study.constraints.values()) if text]
    if demands:
        yield plain(f"Demanded: {'; '.join(demands)}.")
    rows = [_front_row(findings, result) for group in findings.groups() for result in group.results]
    if rows:
        yield markdown_table(
            ["trial", "set-up", *map(_named, findings.objectives), "changes", "tied with"], rows
        )
        yield (
            "The Pareto front, and that of the set-ups which train exactly what the baseline trains. "
            "x: times the baseline, with a question mark where that is hardly known or may be no difference; "
            f"\N{PLUS-MINUS SIGN}: half of the 95 % interval; \\{MARK}: see below."
        )


def _meanings(recorded: Mapping[str, Any], parameters: Sequence[str]) -> Iterator[str]:
    """Yield what a table leaves unsaid: parameters that are the same everywhere, what peak memory is."""
    if parameters:
        yield f"Parameters that were not searched: {', '.join(map(code, parameters))}."
    if peak_text(recorded):
        yield plain(peak_text(recorded))


def _front_row(findings: Findings, result: TrialResult) -> list[str]:
    figures = []
    compared = baseline_gains(findings, result)
    for name in findings.objectives:
        gain = f" ({brief_text(compared[name])})" if name in compared else ""
        figures.append(findings.figure(result, name) + gain)
    ties = {**findings.tied, **findings.contenders}.get(result.number, ())
    return [
        _marked(result),
        code(result.label),
        *figures,
        _changes(result),
        tie_text(ties).removeprefix("tied with "),
    ]


def _marked(result: TrialResult) -> str:
    """Return a trial's number, marked where a note below the table is about it."""
    return f"{result.number}" + (f"\\{MARK}" if result.remarks else "")


def _notes(results: Iterable[TrialResult]) -> Iterator[str]:
    """Yield what is to be known of a table's trials before its figures are believed, as a list."""
    lines = [f"- {plain(f'{numbers_text(note.numbers)}: {note.text}')}" for note in notes(results)]
    if lines:
        yield "\n".join([f"\\{MARK} Before you believe the figures:", "", *lines])


def _ladders(findings: Findings, pictures: Collection[str]) -> Iterator[str]:
    found = [ladder(findings, view(findings, accepted).front) for accepted in ((), change_words(findings))]
    different = {one.top.number: one for one in found if one is not None and one.rungs}
    if not different:
        return
    yield "## What each choice brings"
    yield from _picture("ladder", "The ladder from the baseline to the best combination", pictures)
    for one in different.values():
        yield plain(
            f"To trial {one.top.number}, the best combination of set-ups that change "
            f"{_changes(one.top)} (the largest product of gains), step by step:"
        )
        yield _climb(findings, one)
    yield "Each choice alone, and on top of all the others of the last combination:"
    last = list(different.values())[-1]
    yield _parts(findings, last)
    measured = [one.start for one in different.values()]
    measured += [rung.result for one in different.values() for rung in one.rungs]
    measured += [part.alone for part in last.parts if part.alone is not None]
    measured += [part.without for part in last.parts if part.without is not None]
    yield from _notes({result.number: result for result in measured}.values())


def _climb(findings: Findings, found: Ladder) -> str:
    names = [_named(name) for name in findings.objectives]
    label = "baseline" if findings.baseline is not None else found.start.label
    start = _marked(found.start)
    rows = [[code(label), *(findings.figure(found.start, name) for name in findings.objectives), "", start]]
    for index, rung in enumerate(found.rungs):
        cells = []
        for name in findings.objectives:
            step = f", this step {gain_text(rung.steps[name])}" if name in rung.steps and index else ""
            all_gains = f"{gain_text(rung.gains[name])}{step}" if name in rung.gains else ""
            cells.append(all_gains or findings.figure(rung.result, name))
        adds = " ".join(f"+ {code(text)}" for text in rung.adds)
        rows.append([adds, *cells, _changes(rung.result), _marked(rung.result)])
    return markdown_table(["step", *names, "changes", "trial"], rows)


def _parts(findings: Findings, found: Ladder) -> str:
    names = [_named(name) for name in findings.objectives]
    rows = [[code(part.choice), *_alone(findings, part), *_on_top(findings, part)] for part in found.parts]
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
        return _factors(gains, findings)
    said = "not run" if result is None else f"trial {result.number}: {plain(result.outcome.text)}"
    return [said] + [""] * (len(findings.objectives) - 1)


def _effects(findings: Findings, pictures: Collection[str]) -> Iterator[str]:
    found = effects(findings)
    if found is None:
        return
    yield "## What each choice does over all trials"
    yield from _picture("effects", "The factor of each choice, over all trials", pictures)
    rows = [
        [
            code(effect.choice),
            code(effect.against),
            *(_factors(effect.gains, findings) if effect.gains else _untold(findings)),
            str(effect.n_trials),
        ]
        for effect in found.effects
    ]
    names = [_named(name) for name in findings.objectives]
    yield markdown_table(["choice", "instead of", *names, "trials with it"], rows)
    yield (
        f"As if each choice multiplied by the same factor wherever it is made, from {found.n_trials} trials; "
        "brackets hold 95 % intervals."
    )


def _factors(found: Gains, findings: Findings) -> list[str]:
    return [gain_text(found[name]) if name in found else "" for name in findings.objectives]


def _untold(findings: Findings) -> list[str]:
    return ["cannot be told from other choices"] + [""] * (len(findings.objectives) - 1)


def _refused(findings: Findings) -> Iterator[str]:
    found = refusals(findings)
    if not found:
        return
    yield "## Refused, and why"
    rows = [
        [one.how, plain(one.reason), numbers_text([result.number for result in one.results])]
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
    yield "\n".join(f"- {plain(line)}" for line in lines if line)
    yield "The whole study again:"
    yield command(study.command)


def _changes(result: TrialResult) -> str:
    return plain(", ".join(result.changes).replace("_", " ") or "nothing")


def _picture(name: str, words: str, pictures: Collection[str]) -> Iterator[str]:
    for path in pictures:
        if path.rsplit("/", 1)[-1] == f"{name}.svg":
            yield f"![{words}]({path})"


def _named(name: str) -> str:
    return plain(name_text(name))
