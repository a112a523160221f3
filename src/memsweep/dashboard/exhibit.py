"""What does the dashboard show?  One study, made anew from the study's folder, in memory.

results.jsonl and study.json are the truth; the storage that a sweep mirrors itself into is left alone.
Numbers are the study's own: a trial without a result keeps its place, so that `trial 17` is number 17.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import InMemoryStorage

from memsweep.dashboard.coordinates import parallel_picture
from memsweep.dashboard.feasible_front import front_picture
from memsweep.dashboard.notes import gap_note, study_note, trial_note
from memsweep.dashboard.offered import Files
from memsweep.dashboard.parameters import distributions
from memsweep.dashboard.shown import UNDER_WAY, UNRECORDED, finished, missing, unfinished
from memsweep.findings.find import Findings, find
from memsweep.findings.scale import scales
from memsweep.findings.words import constraint_text, counts_text
from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study

PICTURES = FRONT, PARALLEL = ("feasible-front", "parallel-coordinates")
"""What the pictures are called, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A study as the dashboard gets it.

    Attributes:
        storage: Optuna's storage, which holds that study alone.
        files: The artifacts.
        front: Numbers of the trials on the feasible front.
    """

    storage: InMemoryStorage
    files: Files
    front: frozenset[int]


def exhibit(folder: StudyFolder) -> Exhibit:
    """Return the study in `folder` as it is now.

    Raises:
        FileNotFoundError: If the folder holds no study.
        KeyError, TypeError, ValueError: If one of its files holds something else.
    """
    study, results = read_study(folder.path)
    findings, files = find(results, study), Files(folder, study)
    shown, known = scales(study, results), distributions(study, results)
    own = _empty(findings)
    storage, has_ended = own._storage, study.ended is not None
    attributes: Mapping[str, Any] = files.of_study()
    for key, value in attributes.items():
        storage.set_study_system_attr(own._study_id, key, value)
    trials = {
        result.number: (
            finished(result, findings, shown, known, folder, files.of_trial(result)),
            trial_note(result, findings, folder),
        )
        for result in findings.results
    }
    for number in missing(results, folder, has_ended=has_ended):
        note = gap_note(UNRECORDED if has_ended else UNDER_WAY)
        trials[number] = (unfinished(has_ended=has_ended), note)
    for number in sorted(trials):
        trial, note = trials[number]
        trial_id = storage.create_new_trial(own._study_id, template_trial=trial)
        _save_note(SimpleNamespace(storage=storage, study=own, _trial_id=trial_id), note)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        own.set_metric_names([scale.title for scale in shown])
    _save_note(own, study_note(findings, folder))
    _save_picture(own, FRONT, front_picture(findings, shown))
    if (picture := parallel_picture(findings)) is not None:
        _save_picture(own, PARALLEL, picture)
    assert isinstance(storage, InMemoryStorage)
    return Exhibit(storage=storage, files=files, front=frozenset(r.number for r in findings.front))


def _empty(findings: Findings) -> optuna.Study:
    """Return the study without trials, with what is known of it as a whole."""
    study = findings.study
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.WARNING)  # it would say that a study was created in memory
    try:
        own = optuna.create_study(
            storage=InMemoryStorage(),
            study_name=_name(findings),
            directions=[direction.value for direction in study.objectives.values()],
        )
    finally:
        optuna.logging.set_verbosity(level)
    facts = {
        "which picture counts": f"the feasible front: the picture {FRONT}, and the note",
        "trials": counts_text(findings.counts()),
        "constraints": "; ".join(filter(None, map(constraint_text, study.constraints.values()))),
        "ended": study.ended,
        "command": study.command,
        "created": study.created,
        **study.context,
    }
    for key, value in facts.items():
        if value:
            own.set_user_attr(key, value)
    return own


def _name(findings: Findings) -> str:
    """Return the study's name, with what a list of studies does not show otherwise."""
    context = findings.study.context
    words = [context[group] for group in ("trainer", "model", "dataset") if group in context]
    return f"{findings.study.name} ({', '.join(words)})" if words else findings.study.name


def _save_note(of: Any, text: str) -> None:
    """Save a note of the study, or of whatever has a trial's storage, study and id."""
    from optuna_dashboard import save_note

    save_note(of, text)


def _save_picture(own: optuna.Study, name: str, picture: dict[str, Any]) -> None:
    import plotly.graph_objects as go
    from optuna_dashboard import save_plotly_graph_object

    save_plotly_graph_object(own, go.Figure(picture), graph_object_id=name)
