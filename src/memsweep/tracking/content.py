"""What W&B is told of a study, as plain data: summaries, configs, rows and tables.

    objective/<name>, <name>_low, <name>_high   medians over a trial's runs, ends of the 95 % interval
    measure/<name>, seconds/<phase>             of its first run
    constraint/<name>                           feasible when <= 0
    trial/<fact>                                number, outcome, feasible, changes, reason, n_runs, ...
    pareto/on_front                             as the study's end has it
    train/<name>, eval/<name>                   what the trainer logged, over train/global_step
    repeat/<name>                               each run of a trial that was run again, over repeat/number

    front/size, front/hypervolume, outcome/<type>, reference/<name>    of the study, over trial/number

A number that was not measured has no key.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsweep.findings.course import course
from memsweep.findings.find import Findings
from memsweep.findings.intervals import ends, n_runs
from memsweep.findings.setup import number
from memsweep.findings.words import OUTCOMES, outcome_text, reason_text, remarks_text
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.technique.yaml_text import read_yaml

OWN = "memsweep"
"""The key of all that we put into a run's config: other libraries write configs too."""

STEP = "train/global_step"
ON_FRONT = "pareto/on_front"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        columns: Their names.
        rows: One value a column each; None where there is none.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def trial_summary(result: TrialResult, findings: Findings) -> dict[str, Any]:
    """Return what a trial's run is filtered and compared by.

    Args:
        result: The trial.
        findings: What the study found, as far as it is known.
    """
    members = {member.number for member in findings.front}
    summary: dict[str, Any] = {
        "trial/number": result.number,
        "trial/outcome": result.outcome.type,
        "trial/feasible": result.feasible,
        "trial/changes": ", ".join(result.changes) or "nothing",
        "trial/reason": reason_text(result, findings.study),
        ON_FRONT: result.number in members or result.reused_from in members,
        **{f"objective/{name}": value for name, value in result.objectives.items()},
        **{f"objective/{name}": value for name, value in ends(result).items()},
        **{f"constraint/{name}": value for name, value in result.constraints.items()},
        **{f"measure/{name}": value for name, value in result.measures.items()},
        **{f"seconds/{name}": value for name, value in result.seconds.items()},
    }
    if result.remarks:
        summary["trial/remarks"] = remarks_text(result)
    if result.reused_from is not None:
        summary["trial/reused_from"] = result.reused_from
    if isinstance(result.outcome, Measured):
        summary["trial/n_runs"] = n_runs(result)
    return summary


def trial_config(result: TrialResult, folder: TrialFolder) -> dict[str, Any]:
    """Return all that a person may filter a trial's run by."""
    return {
        OWN: {
            "choice": dict(result.choice),
            "searched": searched(result),
            "parameters": dict(result.parameters),
            "overrides": list(result.overrides),
            "requested_hash": result.requested_hash,
            "effective_hash": result.effective_hash,
            "versions": dict(result.versions),
            "composed": read_yaml(folder.config) if folder.config.exists() else {},
        }
    }


def searched(result: TrialResult) -> dict[str, Any]:
    """Return the searched values that are no techniques: names without dots, numbers as numbers.

    W&B reads a dot in a name as a level, and has no axis for a number that is text.
    """
    return {
        searched_name(key): number(label)
        for key, label in result.parameters.items()
        if not key.startswith("technique/")
    }


def searched_name(key: str) -> str:
    """Return a searched key as a name of one level: `technique.adapter.r` is `technique_adapter_r`."""
    return re.sub(r"\W", "_", key)


def trained(folder: TrialFolder) -> Iterator[dict[str, Any]]:
    """Yield what the trainer logged of a trial, one row a line that is whole."""
    if not folder.log.exists():
        return
    for line in folder.log.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # its process was killed in mid-line
            logged = dict(json.loads(line))
            row = {STEP: int(logged.pop("step"))}
            yield row | {_under(name): float(value) for name, value in logged.items()}


def last_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last value of everything that the trainer logged."""
    merged = {key: value for row in rows for key, value in row.items()}
    return {key: value for key, value in merged.items() if key != STEP}


def _under(name: str) -> str:
    """Return a name of the trainer's under the part that it belongs to, as transformers does for W&B."""
    return f"eval/{name.removeprefix('eval_')}" if name.startswith("eval_") else f"train/{name}"


def runs(result: TrialResult) -> Iterator[dict[str, Any]]:
    """Yield one row a run of a trial that was measured again, the first run as number 0."""
    if not result.repeats:
        return
    for index, outcome in enumerate((result.outcome, *result.repeats)):
        measures = outcome.measures if isinstance(outcome, Measured) else {}
        objectives = {f"repeat/{name}": measures[name] for name in result.objectives if name in measures}
        yield {"repeat/number": index, "repeat/outcome": outcome.type, **objectives}


def study_config(study: Study) -> dict[str, Any]:
    """Return what a study set out to do."""
    return {
        OWN: {
            "objectives": {name: direction.value for name, direction in study.objectives.items()},
            "constraints": {
                name: {"measure": demand.measure, "at_most": demand.at_most, "at_least": demand.at_least}
                for name, demand in study.constraints.items()
            },
            "reference": {
                name: {"value": at.value, "logarithmic": at.logarithmic, "why": at.why}
                for name, at in study.reference.items()
            },
            "parameters": dict(study.parameters),
            "fixed": list(study.fixed),
            "sampler": dict(study.sampler),
            "context": dict(study.context),
            "versions": dict(study.versions),
            "command": study.command,
        }
    }


def study_row(findings: Findings, number: int) -> dict[str, Any]:
    """Return how a study stands once trial `number` has finished."""
    counts = findings.counts()
    row: dict[str, Any] = {"trial/number": number, "front/size": len(findings.front)}
    volume = findings.hypervolume()
    if volume is not None:
        row["front/hypervolume"] = volume
        row |= {f"reference/{name}": at.value for name, at in findings.study.reference.items()}
    return row | {f"outcome/{name}": counts.get(name, 0) for name in OUTCOMES}


def table(findings: Findings, results: Sequence[TrialResult], *, with_outcome: bool) -> Table:
    """Return trials as a table.

    Args:
        findings: What the study found.
        results: The trials, in the order of the rows.
        with_outcome: Whether they are to be told apart by how they ended.
    """
    extra = ("outcome", "reason") if with_outcome else ()
    bounds = [f"{name}_{end}" for name in findings.objectives for end in ("low", "high")]
    columns = ("trial", "set-up", *findings.objectives, *bounds, "runs", "changes", *extra, "command")
    rows = []
    for result in results:
        figures: list[float | None] = [result.objectives.get(name) for name in findings.objectives]
        for name in findings.objectives:
            figures += findings.interval(result, name) or (None, None)
        changes = ", ".join(result.changes) or "nothing"
        why = (outcome_text(result), reason_text(result, findings.study)) if with_outcome else ()
        n_measured = n_runs(result) if result.objectives else None
        rows.append((result.number, result.label, *figures, n_measured, changes, *why, result.command))
    return Table(columns=columns, rows=tuple(rows))


def covered_table(findings: Findings) -> Table:
    """Return the hypervolume after each trial, of those after which there was one."""
    found = [(point.number, point.volume) for point in course(findings) if point.volume is not None]
    return Table(columns=("trial", "hypervolume"), rows=tuple(found))
