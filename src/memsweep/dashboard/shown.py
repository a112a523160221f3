"""How does a trial become one of Optuna's, for people to look at?

Not as the sampler hears of it (`search/tell.py`): that learns from finite bad values of trials that have no
figures, and here they would be drawn as if they had been measured.  So only what was measured has values.  A
trial that a rule stopped early is PRUNED; one that ended in any other way without figures is FAIL, and says
how in its attributes and its note.  Trials with figures that are not on offer are COMPLETE with a violated
constraint, in the one form that the dashboard reads.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from memsweep.dashboard.parameters import drawn, short_names
from memsweep.findings.find import Findings
from memsweep.findings.scale import Scale
from memsweep.findings.words import changes_text, outcome_text, reason_text, remarks_text
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import CutShort
from memsweep.record.trial import TrialResult

UNDER_WAY = "under way: it has not ended yet, or ended together with the study's controller"
UNRECORDED = "no record of it: the study ended without its result"

# The dashboard knows constraints only in the form that Optuna had before version 5.
_CONSTRAINTS = "constraints"


def finished(
    result: TrialResult,
    findings: Findings,
    scales: Sequence[Scale],
    known: Mapping[str, BaseDistribution],
    folder: StudyFolder,
    files: Mapping[str, str],
) -> FrozenTrial:
    """Return a finished trial.

    Args:
        result: The trial.
        findings: What its study found.
        scales: How the objectives are shown.
        known: Searched key to its distribution.
        folder: The study's folder.
        files: Optuna's attributes for its artifacts.
    """
    names = short_names(list(known))
    params = {names[key]: value for key, value in drawn(result, known).items()}
    trial = create_trial(
        state=_state(result),
        values=[scale.shown(result.objectives[scale.name]) for scale in scales]
        if result.objectives
        else None,
        params=params,
        distributions={names[key]: known[key] for key in known if names[key] in params},
        user_attrs=_attributes(result, findings, folder),
        system_attrs={_CONSTRAINTS: violations(result, findings), **files},
    )
    trial.datetime_start, trial.datetime_complete = _times(result, folder.trial(result.number).outcome)
    return trial


def unfinished(*, has_ended: bool) -> FrozenTrial:
    """Return a trial that has no result.

    Args:
        has_ended: Its study has ended.
    """
    state = TrialState.FAIL if has_ended else TrialState.RUNNING
    trial = create_trial(state=state, user_attrs={"reason": UNRECORDED if has_ended else UNDER_WAY})
    trial.datetime_start = trial.datetime_complete = None
    return trial


def violations(result: TrialResult, findings: Findings) -> list[float]:
    """Return by how much each constraint is violated, as a share of its bound, and whether it is on offer.

    The last number is 1 for whatever the study does not offer and 0 for the rest, so that no trial passes for
    feasible that is infeasible for a reason without a number: other data, or memory that ran out in a repeat.
    """
    found = []
    for name, constraint in findings.study.constraints.items():
        if name in result.constraints:
            scale = abs(constraint.bound) if constraint.bound else 1.0
            found.append(result.constraints[name] / scale)
    return [*found, 0.0 if result.feasible else 1.0]


def missing(results: Iterable[TrialResult], folder: StudyFolder, *, has_ended: bool) -> tuple[int, ...]:
    """Return the numbers of trials without a result: gaps, and those whose folder has no outcome yet.

    Args:
        results: The finished trials.
        folder: The study's folder.
        has_ended: The study has ended: then a folder behind the last trial is nothing that is to come.
    """
    there = {result.number for result in results}
    begun = set() if has_ended else _begun(folder)
    last = max([*there, *begun], default=-1)
    return tuple(number for number in range(last + 1) if number not in there)


def _begun(folder: StudyFolder) -> set[int]:
    if not folder.trials.is_dir():
        return set()
    numbers = {int(path.name) for path in folder.trials.iterdir() if path.name.isdecimal()}
    return {number for number in numbers if not folder.trial(number).outcome.exists()}


def _state(result: TrialResult) -> TrialState:
    if result.objectives:
        return TrialState.COMPLETE
    return TrialState.PRUNED if isinstance(result.outcome, CutShort) else TrialState.FAIL


def _attributes(result: TrialResult, findings: Findings, folder: StudyFolder) -> dict[str, Any]:
    """Return what stands beside the values: how it ended and why, the exact figures, how to repeat it."""
    on_front = result.number in {member.number for member in findings.front}
    wanted = [*findings.objectives, *(node.measure for node in findings.study.constraints.values())]
    figures = {**result.medians, **result.objectives}
    texts = {
        "outcome": outcome_text(result),
        "reason": reason_text(result, findings.study),
        "remarks": remarks_text(result),
        "set-up": result.label,
        "changes": changes_text(result.changes).removeprefix("Changes ") if result.changes else "nothing",
        "on the feasible front": "yes" if on_front else "no",
    }
    return {
        **{name: text for name, text in texts.items() if text},
        **{name: _plain(figures[name]) for name in dict.fromkeys(wanted) if name in figures},
        "folder": str(folder.trial(result.number).path),
        "command": result.command,
    }


def _plain(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _times(result: TrialResult, outcome: Path) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """Return when a trial began and ended, as its outcome's file has it; None where there is no such file."""
    if not outcome.exists() or "total" not in result.seconds:
        return None, None
    end = datetime.datetime.fromtimestamp(outcome.stat().st_mtime)
    return end - datetime.timedelta(seconds=result.seconds["total"]), end
