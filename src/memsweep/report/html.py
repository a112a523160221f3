"""The report: one page that needs no network, made from a study's folder alone.

It answers first (fastest, smallest, what the baseline costs), then shows the picture, the front, every
trial, and how all of it was measured.  The same study gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from memsweep.findings.find import Findings, find
from memsweep.findings.words import (
    caution,
    constraint_text,
    counts_text,
    name_text,
    reason_text,
    tie_text,
    trials_text,
)
from memsweep.record.folder import StudyFolder, write_text
from memsweep.record.study import Study
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.report import tables
from memsweep.report.scatter import figure
from memsweep.units import measure_text, seconds_text

INTERVALS = (
    "A figure is followed by half of its 95 % interval, where its spread is known. Set-ups are tied when "
    "their intervals overlap in every respect."
)
"""How to read the figures of the front."""


def write_report(study_folder: StudyFolder, results: Sequence[TrialResult], study: Study) -> Path:
    """Write report.html and return where it is.

    Args:
        study_folder: The study's folder; what trials say of the machine is read from it.
        results: Its finished trials.
        study: What it set out to do.
    """
    findings = find(results, study)
    write_text(study_folder.report, page(findings, _recorded(study_folder, findings)))
    return study_folder.report


def page(findings: Findings, recorded: Mapping[str, str]) -> str:
    """Return the report as HTML.

    Args:
        findings: What to show.
        recorded: What the baseline's trial recorded of itself and the machine: name to text.
    """
    reasons = {result.number: reason_text(result, findings.study) for result in findings.results}
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            # What the page may load: nothing.  The browser enforces it.
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>memsweep: {escape(findings.study.name)}</title>",
            f"<style>{_asset('page.css')}</style></head><body>",
            f"<h1>{escape(findings.study.name)}</h1>",
            _lead(findings),
            _answers(findings),
            *_picture(findings, reasons),
            *_front(findings),
            *_unmeasured(findings),
            "<h2>Every trial</h2>",
            tables.trials_table(findings, reasons),
            *_time(findings),
            *_circumstances(findings, recorded),
            f"<script>{_asset('page.js')}</script></body></html>\n",
        ]
    )


def _lead(findings: Findings) -> str:
    total = sum(result.seconds.get("total", 0.0) for result in findings.results)
    took = f" in {seconds_text(total)} of trial time" if total else ""
    context = ", ".join(f"{name} {value}" for name, value in findings.study.context.items())
    counts = counts_text(findings.counts())
    ended = f" Ended: {findings.study.ended}." if findings.study.ended else ""
    lead = f"{trials_text(len(findings.results))}{took}: {counts or 'none finished'}.{ended}"
    return f"<p>{escape(lead)}</p>" + (f'<p class="faint">{escape(context)}</p>' if context else "")


def _answers(findings: Findings) -> str:
    cards = [_card(findings, answer.title, answer.condition, answer.result) for answer in findings.answers()]
    if findings.baseline is not None:
        cards.insert(0, _card(findings, "The baseline", "what you have without asking", findings.baseline))
    if not findings.front:
        cards.append(
            '<div class="answer"><h3>Nothing is on offer</h3><p>No trial was measured that meets every '
            "demand. The table of every trial says what each one missed.</p></div>"
        )
    return f'<div class="answers">{"".join(cards)}</div>'


def _card(findings: Findings, title: str, condition: str, result: TrialResult) -> str:
    compared = "" if findings.is_baseline(result) and title == "The baseline" else findings.comparison(result)
    infeasible = "" if result.feasible else '<p class="bad">does not meet every demand</p>'
    return (
        f'<div class="answer"><h3>{escape(title)}</h3><p class="condition">{escape(condition)}</p>'
        f'<p class="figures">{escape(findings.sentence(result))}</p>'
        f'<p class="compared">{escape(compared)}</p>{infeasible}'
        f'<p class="choice">{tables.choice(result)}</p>{tables.command(result.command)}</div>'
    )


def _picture(findings: Findings, reasons: Mapping[int, str]) -> list[str]:
    if not findings.measured:
        return []
    names = [name_text(name) for name in findings.objectives[:2]]
    drawn = figure(findings, reasons)
    return [
        f"<h2>{escape(' against '.join(names).capitalize())}</h2>",
        '<p class="faint">One point a measured set-up. Large points are on the Pareto front: no other '
        "measured set-up is better in one respect without being worse in another. "
        "Pick a point to see the command that repeats it.</p>",
        '<div id="scatter" role="img" aria-label="The figures are in the tables below"></div>',
        tables.legend(drawn["data"]),
        '<div id="picked" aria-live="polite" hidden></div>',
        f'<script type="application/json" id="figure">{_json(drawn)}</script>',
        f"<script>{_plotly()}</script>",
    ]


def _unmeasured(findings: Findings) -> list[str]:
    if not findings.unmeasured:
        return []
    return [
        "<h2>Not in the picture</h2>",
        '<p class="faint">These ended without figures, so they have no place in it.</p>',
        tables.unmeasured_list(findings.unmeasured),
    ]


def _front(findings: Findings) -> list[str]:
    if not findings.front:
        return []
    demands = [text for text in map(constraint_text, findings.study.constraints.values()) if text]
    offered = f" Demanded: {'; '.join(demands)}." if demands else ""
    return [
        "<h2>What is worth having</h2>",
        '<p class="faint">The Pareto front, grouped by what a set-up changes beside speed and memory: '
        f"compare across groups only if you accept the change.{escape(offered)} {INTERVALS}</p>",
        *([f'<p class="bad">{escape(caution(findings.study))}</p>'] if caution(findings.study) else []),
        tables.front_table(findings),
        *_contenders(findings),
    ]


def _contenders(findings: Findings) -> list[str]:
    if not findings.contenders:
        return []
    trials = [
        f'<a href="#trial-{number}">trial {number}</a> ({escape(tie_text(others))})'
        for number, others in findings.contenders.items()
    ]
    return [f"<p>Might as well be on it: {', '.join(trials)}.</p>"]


def _time(findings: Findings) -> list[str]:
    table = tables.time_table(findings.results)
    return ["<h2>Where the time went</h2>", table] if table else []


def _circumstances(findings: Findings, recorded: Mapping[str, str]) -> list[str]:
    study = findings.study
    objectives = [f"{direction.value} {name_text(name)}" for name, direction in study.objectives.items()]
    corner = [f"{name_text(name)} {measure_text(name, at.value)}" for name, at in study.reference.items()]
    volume = findings.hypervolume()
    covered = f"{volume:.3f}, up to {', '.join(corner)}" if volume is not None else ""
    versions = dict(study.versions)
    for result in findings.results:
        versions.update(result.versions)
    facts = [
        ("Objectives", ", ".join(objectives)),
        *((name.replace("_", " ").capitalize(), text) for name, text in study.context.items()),
        ("Same for every trial", " ".join(study.fixed)),
        ("Hypervolume of the front", covered),
        ("Compared under", _conditions(study)),
        ("Figures in Optuna's storage", "of each trial's first run" if findings.has_repeats else ""),
        ("Started", study.created),
        ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))),
    ]
    return [
        "<h2>How this was measured</h2>",
        tables.facts_list(facts),
        *_baseline_facts(recorded),
        "<p>The whole study again:</p>",
        tables.command(study.command),
    ]


def _conditions(study: Study) -> str:
    """Return what every trial on the front has in common with the first measured one."""
    return "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in study.conditions.items())


def _baseline_facts(recorded: Mapping[str, str]) -> list[str]:
    if not recorded:
        return []
    title = "<summary>What the baseline's trial recorded of itself and the machine</summary>"
    return [f"<details open>{title}{tables.facts_list(recorded.items())}</details>"]


def _recorded(folder: StudyFolder, findings: Findings) -> dict[str, str]:
    """Return what the baseline's trial, or else the first measured one, recorded of itself."""
    first = findings.baseline or next(iter(findings.measured), None)
    if first is None or not folder.trial(first.number).outcome.exists():
        return {}
    return dict(_flat(TrialRecord.read(folder.trial(first.number)).facts))


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, fact in sorted(facts.items()):
        words = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(fact, Mapping):
            yield from _flat(fact, f"{words}: ")
        elif isinstance(fact, (int, float)) and not isinstance(fact, bool):
            yield words, measure_text(name, fact)
        else:
            yield words, str(fact)


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # a second to import, and a text report needs none of it

    script: str = get_plotlyjs()
    return script.replace("</script", "<\\/script")


def _json(data: Any) -> str:
    """Return JSON that is safe inside a script element: `<` cannot end it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")
