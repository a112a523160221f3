"""The report: one page that needs no network, made from a study's folder alone.

It answers first (what the baseline costs, the fastest, the smallest), then shows the picture, the front, what
each choice brings, every trial, and how all of it was measured.  It compares only what trains the same until
a reader accepts more.  The same study gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from memsweep.findings.find import Findings, find
from memsweep.findings.words import caution, constraint_text, counts_text, name_text, trials_text
from memsweep.record.folder import StudyFolder, write_text
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report import tables
from memsweep.report.brought import effects_section, ladder_section
from memsweep.report.cards import answer_cards
from memsweep.report.circumstances import circumstances, lengths_text, recorded_facts
from memsweep.report.filters import filter_bar, filter_data
from memsweep.report.lines import growth, parallel
from memsweep.report.scatter import figure
from memsweep.report.sheet import Sheet
from memsweep.units import seconds_text

INTERVALS = (
    "A figure is followed by half of its 95&nbsp;% interval, where its spread is known. Set-ups are tied "
    "when their intervals overlap in every respect."
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
    recorded, lengths = recorded_facts(study_folder, findings), lengths_text(study_folder)
    write_text(study_folder.report, page(findings, recorded, lengths))
    return study_folder.report


def page(findings: Findings, recorded: Mapping[str, Any], lengths: str = "") -> str:
    """Return the report as HTML.

    Args:
        findings: What to show.
        recorded: What the baseline's trial recorded of itself and the machine.
        lengths: How long the examples are, as plain text; empty where that was not counted.
    """
    sheet = Sheet.of(findings)
    sections = [
        *_picture(sheet),
        *_front(sheet),
        *ladder_section(sheet),
        *effects_section(sheet),
        *_together(sheet),
        *_growth(sheet),
        *_titled("Refused, and why", "refused", tables.refusals_table(sheet)),
        *_titled("Where the time went", "time", tables.time_table(sheet)),
        *_titled("Every trial", "every", tables.trials_table(sheet)),
        *circumstances(findings, recorded, lengths),
    ]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            # What the page may load: nothing.  The browser enforces it.
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>memsweep: {escape(findings.study.name)}</title>",
            f"<style>{_asset('page.css')}</style>",
            "<noscript><style>[hidden] { display: revert !important; }</style></noscript></head><body>",
            f"<h1>{escape(findings.study.name)}</h1>",
            _lead(findings),
            filter_bar(sheet),
            answer_cards(sheet),
            *sections,
            '<aside id="picked" aria-live="polite" hidden></aside>',
            f'<script type="application/json" id="study">{_json(filter_data(sheet))}</script>',
            f"<script>{_plotly()}</script>" if findings.measured else "",
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
    warned = caution(findings.study) if findings.measured else ""
    return (
        f"<p>{escape(lead)}</p>"
        + (f'<p class="faint">{escape(context)}</p>' if context else "")
        + (f'<p class="bad">{escape(warned)}</p>' if warned else "")
    )


def _picture(sheet: Sheet) -> list[str]:
    findings = sheet.findings
    if not findings.measured:
        return _titled("Without figures", "picture", tables.unmeasured_strip(sheet))
    names = [name_text(name) for name in findings.objectives[:2]]
    drawn = figure(findings, sheet.reasons, sheet.shown)
    return [
        f"<h2 id='picture'>{escape(' against '.join(names).capitalize())}</h2>",
        '<p class="faint">One point a measured set-up. Large points are on the Pareto front: no other '
        "set-up that is compared is better in one respect without being worse in another. "
        "Pick a point for its details and the command that repeats it.</p>",
        '<div id="scatter" class="plot" role="img" aria-label="The figures are in the tables below"></div>',
        tables.legend(drawn["data"]),
        tables.unmeasured_strip(sheet),
        _figure_data("scatter", drawn),
    ]


def _front(sheet: Sheet) -> list[str]:
    findings = sheet.findings
    if not findings.front:
        return []
    demands = [text for text in map(constraint_text, findings.study.constraints.values()) if text]
    offered = f" Demanded: {'; '.join(demands)}." if demands else ""
    return [
        "<h2 id='front'>What is worth having</h2>",
        '<p class="faint">The Pareto front of what is compared, grouped by what a set-up changes beside '
        f"speed and memory.{escape(offered)} {INTERVALS}</p>",
        tables.front_table(sheet),
        tables.contenders(sheet),
    ]


def _together(sheet: Sheet) -> list[str]:
    drawn = parallel(sheet.findings)
    if drawn is None:
        return []
    return [
        "<h2 id='together'>All set-ups side by side</h2>",
        '<p class="faint">Every measured set-up that is compared is a line from top to bottom: what it '
        "chose, then what it measured, the better to the right. Strong lines are on the front. Pick one "
        "for its details.</p>",
        f'<div id="parallel" class="plot" style="height:{drawn["height"]}px" role="img" '
        'aria-label="The figures are in the table of every trial"></div>',
        _figure_data("parallel", drawn),
    ]


def _growth(sheet: Sheet) -> list[str]:
    found = growth(sheet.findings)
    if found is None:
        return []
    drawn, said = found
    return [
        "<h2 id='growth'>How the front grew</h2>",
        f'<p class="faint">{escape(said)}</p>',
        '<div id="growth-plot" class="plot low" role="img" aria-label="What the sentence above says"></div>',
        _figure_data("growth-plot", drawn),
    ]


def _titled(title: str, name: str, body: str) -> list[str]:
    return [f"<h2 id='{name}'>{title}</h2>", body] if body else []


def _figure_data(name: str, drawn: Mapping[str, Any]) -> str:
    return f'<script type="application/json" id="{name}-figure">{_json(drawn)}</script>'


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # a second to import, and a text report needs none of it

    script: str = get_plotlyjs()
    return script.replace("</script", "<\\/script")


def _json(data: Any) -> str:
    """Return JSON that is safe inside a script element: `<` cannot end it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")
