"""How a study was measured, for the end of its page: data, machine, versions, commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from memsweep.findings.find import Findings
from memsweep.findings.words import name_text
from memsweep.lengths.printed import text
from memsweep.lengths.table import Lengths
from memsweep.record.folder import StudyFolder, read_json
from memsweep.record.study import Study
from memsweep.record.trial import TrialRecord
from memsweep.report.sheet import command, facts_list
from memsweep.units import measure_text

DATA = (
    "examples",
    "examples_available",
    "rows",
    "rows_per_pass",
    "source_tokens",
    "kept_tokens",
    "examples_per_step",
    "steps_per_pass",
    "evaluation_rows",
)
"""Facts of a trial that are about its data, in the order of the page."""

MACHINE = ("machine", "device", "device_reason", "threads", "surroundings", "lease", "memory")
"""Facts of a trial that are about where it ran."""


def circumstances(findings: Findings, recorded: Mapping[str, Any], lengths: str = "") -> list[str]:
    """Return how the study was measured, as sections of the page.

    Args:
        findings: What the study found.
        recorded: Facts that the baseline's trial, or else the first measured one, recorded of itself.
        lengths: How long the examples are, as plain text; empty where that was not counted.
    """
    study = findings.study
    return [
        "<h2 id='measured'>How this was measured</h2>",
        facts_list(_of_study(findings)),
        *_titled("Data, as the baseline prepares it", _data(findings, recorded)),
        *(
            [f'<h3>How long the examples are</h3><pre class="wide">{escape(lengths)}</pre>']
            if lengths
            else []
        ),
        *_titled("Machine", _flat({name: recorded[name] for name in MACHINE if name in recorded})),
        *_titled("What else the baseline's trial recorded", _flat(_others(recorded))),
        f"<h3>Versions</h3><p>{escape(_versions(findings))}</p>",
        "<h3>Commands</h3><p>The whole study again:</p>",
        command(study.command),
        *_baseline(findings),
    ]


def recorded_facts(folder: StudyFolder, findings: Findings) -> dict[str, Any]:
    """Return what the baseline's trial, or else the first measured one, recorded of itself."""
    first = findings.baseline or next(iter(findings.measured), None)
    if first is None or not folder.trial(first.number).outcome.exists():
        return {}
    try:
        return dict(TrialRecord.read(folder.trial(first.number)).facts)
    except ValueError as error:  # it is torn, and everything else of the study is there
        return {"cannot be read": str(error)}


def _baseline(findings: Findings) -> list[str]:
    if findings.baseline is None:
        return []
    said = "<p>The baseline alone; every other trial has its command in the table above:</p>"
    return [said, command(findings.baseline.command)]


def lengths_text(folder: StudyFolder) -> str:
    """Return how long the examples are, if `memsweep lengths --study` has counted it; else nothing."""
    if not folder.lengths.exists():
        return ""
    try:
        return text(Lengths.from_mapping(read_json(folder.lengths)))
    except ValueError as error:
        return f"{folder.lengths.name} cannot be read: {error}"


def _of_study(findings: Findings) -> list[tuple[str, str]]:
    study = findings.study
    objectives = [f"{direction.value} {name_text(name)}" for name, direction in study.objectives.items()]
    corner = [f"{name_text(name)} {measure_text(name, at.value)}" for name, at in study.reference.items()]
    volume = findings.hypervolume()
    covered = f"{volume:.3f}, up to {', '.join(corner)}" if volume is not None else ""
    asked = f"of which {len(findings.results):,} were asked for"
    space = "" if study.n_cells is None else f"{study.n_cells:,} legal set-ups, {asked}"
    return [
        ("Objectives", ", ".join(objectives)),
        *((name.replace("_", " ").capitalize(), text) for name, text in study.context.items()),
        ("Same for every trial", " ".join(study.fixed)),
        ("Space", space),
        ("Hypervolume of the front", covered),
        ("Compared under", _conditions(study)),
        ("Figures in Optuna's storage", "of each trial's first run" if findings.has_repeats else ""),
        ("Started", study.created),
    ]


def _conditions(study: Study) -> str:
    """Return what every trial on the front has in common with the first measured one."""
    return "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in study.conditions.items())


def _data(findings: Findings, recorded: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = list(_flat({name: recorded[name] for name in DATA if name in recorded}))
    kept, given = recorded.get("kept_tokens"), recorded.get("source_tokens")
    if isinstance(kept, int | float) and isinstance(given, int | float) and given:
        facts.append(("share of tokens kept", f"{kept / given:.0%}"))
    shares = [findings.kept_share(result) for result in findings.measured]
    others = sorted({share for share in shares if share is not None and share != 1})
    if others:
        text = f"{others[0]:.0%} to {others[-1]:.0%}" if others[1:] else f"{others[0]:.0%}"
        facts.append(("kept by other set-ups, of the baseline's", text))
    return facts


def _others(recorded: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fact for name, fact in recorded.items() if name not in (*DATA, *MACHINE)}


def _versions(findings: Findings) -> str:
    versions = dict(findings.study.versions)
    for result in findings.results:
        versions.update(result.versions)
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def _titled(title: str, facts: Iterable[tuple[str, str]]) -> list[str]:
    found = facts_list(facts)
    return [f"<h3>{title}</h3>", found] if found else []


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield facts as texts, those within others after their name; tables within facts are left out."""
    for name, fact in facts.items():
        words = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(fact, Mapping):
            yield from _flat(fact, "" if name == "machine" else f"{words}: ")
        elif isinstance(fact, list):
            if not any(isinstance(item, Mapping) for item in fact):
                yield words, ", ".join(map(str, fact))
        elif isinstance(fact, int | float) and not isinstance(fact, bool):
            yield words.removesuffix(" bytes"), measure_text(name, fact)
        else:
            yield words, str(fact)
