"""What does the dashboard say in words?  The note of the study, and one for each trial, as Markdown.

The study's note says which picture counts, since the dashboard's own do not all know constraints.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memsweep.findings.answers import answers
from memsweep.findings.find import Findings
from memsweep.findings.words import (
    caution,
    changes_text,
    constraint_text,
    counts_text,
    name_text,
    outcome_text,
    reason_text,
    remarks_text,
    runs_text,
    tie_text,
    trials_text,
)
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Crashed
from memsweep.record.trial import TrialResult
from memsweep.units import seconds_text

STUDY_PAGE = "/dashboard/studies/0"
"""Where the dashboard shows the study: there is one, the first."""

AUTHORITY = (
    "**What counts is the feasible front**: the picture `feasible-front` and the table below. *Best Trials* "
    "lists the same trials. The dashboard's other pictures are Optuna's own: they show the values of "
    "infeasible trials too (grey where they know of constraints), know no intervals, and put set-ups side by "
    "side that do not train the same thing."
)
NO_VALUES = (
    "A trial without figures has no values: *Fail* is whatever ended it (memory, time, a crash, a broken "
    "rule; its attribute `reason` says which), *Pruned* was cut short by a rule."
)
_SPECIAL = "\\`*_{}[]<>#|~$"


def study_note(findings: Findings, folder: StudyFolder) -> str:
    """Return the study's note."""
    study = findings.study
    demands = "; ".join(filter(None, map(constraint_text, study.constraints.values())))
    state = f"ended: {study.ended}" if study.ended else "has not said that it ended: it runs, or was killed"
    parts = [
        f"{_plain(counts_text(findings.counts())) or 'no trial yet'}. The study {_plain(state)}.",
        AUTHORITY,
        *_front(findings),
        f"A trial is feasible with {_plain(demands)}." if demands else "",
        f"{_plain(caution(study))}." if caution(study) else "",
        NO_VALUES,
        *_failures(findings),
        f"The report, with the ladder and the intervals: `memsweep report {shlex.quote(str(folder.path))}`",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def trial_note(result: TrialResult, findings: Findings, folder: StudyFolder) -> str:
    """Return a trial's note: choice, outcome, reason, figures, command, paths."""
    tied = findings.tied.get(result.number, ()) or findings.contenders.get(result.number, ())
    sentences = [
        _standing(result, findings),
        _plain(reason_text(result, findings.study)),
        _plain(changes_text(result.changes)),
        tie_text(tied),
        runs_text(result),
        _plain(remarks_text(result)),
    ]
    trial = folder.trial(result.number)
    paths = [trial.config, trial.effective, trial.outcome, trial.stderr]
    there = [f"`{path}`" for path in paths if path.exists()] or [f"`{trial.path}`"]
    parts = [
        f"**{_plain(result.label)}**",
        _sentences(sentences),
        *_figures(result, findings),
        *_last_lines(result),
        "Repeat it:",
        _block(result.command, "sh"),
        "Its files: " + ", ".join(there),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def gap_note(reason: str) -> str:
    """Return the note of a trial without a result."""
    return reason[0].upper() + reason[1:] + ".\n"


def _standing(result: TrialResult, findings: Findings) -> str:
    numbers = [{member.number for member in front} for front in (findings.front, findings.same_front)]
    ended = "the baseline, " if findings.is_baseline(result) else ""
    ended += outcome_text(result)
    if result.number in numbers[0]:
        return f"{ended}; on the feasible front"
    if result.number in numbers[1]:
        return f"{ended}; on the front of those that train exactly what the baseline trains"
    return ended


def _front(findings: Findings) -> Iterator[str]:
    if not findings.front:
        yield "**No trial is feasible so far.**" if findings.results else ""
        return
    yield f"**The feasible front: {trials_text(len(findings.front))}**"
    rows = [
        (
            _link(result.number),
            _plain(result.label),
            *(findings.figure(result, name) for name in findings.objectives),
            _plain(changes_text(result.changes)),
            tie_text(findings.tied.get(result.number, ())),
        )
        for result in findings.front
    ]
    yield _table(("trial", "set-up", *map(_named, findings.objectives), "changes", ""), rows)
    found = (
        f"- {_plain(answer.title)} ({_plain(answer.condition)}): trial {_link(answer.result.number)}, "
        f"{_plain(findings.sentence(answer.result))}"
        for answer in answers(findings)
    )
    yield "\n".join(found)


def _failures(findings: Findings) -> Iterator[str]:
    """Yield what ended trials without figures, each kind with its trials."""
    kinds: dict[str, list[int]] = {}
    for result in findings.unmeasured:
        kinds.setdefault(outcome_text(result), []).append(result.number)
    if kinds:
        lines = (f"- {kind}: {', '.join(map(_link, numbers))}" for kind, numbers in kinds.items())
        yield "Without figures:\n\n" + "\n".join(lines)


def _figures(result: TrialResult, findings: Findings) -> Iterator[str]:
    if not result.objectives:
        return
    rows = []
    for name in findings.objectives:
        ratio = findings.ratio(result, name)
        compared = "" if ratio is None else f"{ratio:.2f} times the baseline's"
        rows.append((_named(name), findings.figure(result, name), compared))
    kept = findings.kept_share(result)
    if kept is not None:
        rows.append(("tokens kept", f"{kept:.0%}", "of the baseline's"))
    if "total" in result.seconds:
        rows.append(("took", seconds_text(result.seconds["total"]), ""))
    yield _table(("", "measured", ""), rows)


def _last_lines(result: TrialResult) -> Iterator[str]:
    if isinstance(result.outcome, Crashed) and result.outcome.last_lines:
        yield "Its last lines:"
        yield _block("\n".join(result.outcome.last_lines), "text")


def _named(name: str) -> str:
    return _plain(name_text(name))


def _sentences(texts: Iterable[str]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:].rstrip('.')}." for text in texts if text)


def _link(number: int) -> str:
    return f"[{number}]({STUDY_PAGE}/trials?numbers={number})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _block(text: str, language: str) -> str:
    """Return a block of code, with a fence that nothing in it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is: it comes from configurations and from other programs."""
    escapes: Mapping[str, str] = {character: f"\\{character}" for character in _SPECIAL}
    return "".join(escapes.get(character, character) for character in text.replace("\n", " "))
