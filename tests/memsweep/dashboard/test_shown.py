from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FrozenTrial, TrialState

from memsweep.dashboard.parameters import distributions
from memsweep.dashboard.shown import finished, missing, unfinished, violations
from memsweep.findings.find import find
from memsweep.findings.scale import scales
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import (
    Crashed,
    CutShort,
    Interrupted,
    Measured,
    NonFinite,
    NotInForce,
    Outcome,
    OutOfMemory,
    Phase,
    TimedOut,
)
from memsweep.record.trial import TrialResult
from memsweep.units import GIB
from synthetic import ended, measured, study_of

CHOICE = {"adapter": "baseline", "packing": "bfd"}
STUDY = study_of(1)

OUT_OF_MEMORY = OutOfMemory(
    where="device", phase=Phase.BUILD, requested_bytes=GIB, held_bytes=None, evidence="no memory"
)
WITHOUT_FIGURES: list[Outcome] = [
    OUT_OF_MEMORY,
    NotInForce(differences=("asked for one, found another",)),
    TimedOut(limit_seconds=9, phase=Phase.MEASURE),
    NonFinite(what="loss is nan", step=3),
    Crashed(reason="RuntimeError: broken", phase=Phase.BUILD),
    Interrupted(reason="by a person"),
]


def shown(result: TrialResult, folder: Path = Path("outputs/example"), **facts: Any) -> FrozenTrial:
    """Return what the dashboard gets of a trial that is alone in its study."""
    study = dataclasses.replace(STUDY, **facts)
    known = distributions(study, [result])
    findings, own = find([result], study), scales(study, [result])
    return finished(result, findings, own, known, StudyFolder(folder), {})


def test_a_measured_trial_has_its_values_in_the_shown_unit_and_exact_beside_it() -> None:
    trial = shown(measured(0, CHOICE))

    assert trial.state is TrialState.COMPLETE
    assert trial.values == [1383.0, 388.22]
    assert trial.params == {"adapter": "baseline", "packing": "bfd"}
    assert trial.user_attrs["peak_memory_bytes"] == 407_078_175
    assert trial.user_attrs["on the feasible front"] == "yes"
    assert trial.user_attrs["command"].startswith("python train.py technique/packing=bfd")


@pytest.mark.parametrize("outcome", WITHOUT_FIGURES, ids=lambda outcome: outcome.type)
def test_a_trial_without_figures_has_no_values_and_says_why(outcome: Outcome) -> None:
    trial = shown(ended(0, CHOICE, outcome))

    assert (trial.state, trial.values) == (TrialState.FAIL, None)
    assert trial.user_attrs["reason"] == outcome.text
    assert trial.user_attrs["on the feasible front"] == "no"


def test_a_trial_that_a_rule_stopped_is_pruned() -> None:
    cut = CutShort(reason="memory: 3 GiB of 2 GiB", measures={"peak_memory_bytes": 3.0 * GIB})

    assert shown(ended(0, CHOICE, cut)).state is TrialState.PRUNED


def test_constraints_are_in_the_one_form_that_the_dashboard_reads() -> None:
    within, beyond = measured(0, CHOICE), measured(1, {"adapter": "baseline", "checkpointing": "disabled"})

    assert max(shown(within).system_attrs["constraints"]) <= 0
    assert shown(beyond).values is not None
    assert max(shown(beyond).system_attrs["constraints"]) > 0


@pytest.mark.parametrize(
    "facts",
    [{"unlike": ("other data than trial 0",)}, {"repeats": (OUT_OF_MEMORY,)}],
    ids=["other data", "memory"],
)
def test_what_is_infeasible_for_a_reason_without_a_number_does_not_pass_for_feasible(
    facts: dict[str, Any],
) -> None:
    result = measured(0, CHOICE, feasible=False, **facts)

    assert max(violations(result, find([result], STUDY))) == 1


def test_repeated_trials_show_their_median() -> None:
    result = measured(0, CHOICE)
    again = Measured(measures={**result.measures, "kept_tokens": 10.0})

    trial = shown(dataclasses.replace(result, repeats=(again, again)))

    assert trial.user_attrs["kept_tokens"] == 10


def test_a_trial_ended_when_its_outcome_was_written(tmp_path: Path) -> None:
    outcome = StudyFolder(tmp_path).trial(0).outcome
    outcome.parent.mkdir(parents=True)
    outcome.write_text("{}", encoding="utf-8")
    os.utime(outcome, (1_000_000, 1_000_000))

    trial = shown(measured(0, CHOICE), tmp_path)

    assert trial.datetime_complete is not None and trial.datetime_start is not None
    assert trial.datetime_complete.timestamp() == 1_000_000
    assert (trial.datetime_complete - trial.datetime_start).total_seconds() == pytest.approx(5.2)


def test_a_time_that_nobody_wrote_down_does_not_exist() -> None:
    trial = shown(measured(0, CHOICE))

    assert (trial.datetime_start, trial.datetime_complete) == (None, None)


def test_numbers_without_a_result_are_gaps_and_what_is_under_way(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    for number in (0, 2, 3, 4):
        folder.trial(number).path.mkdir(parents=True)
    folder.trial(3).outcome.write_text("{}", encoding="utf-8")
    results = [measured(0, CHOICE), measured(2, CHOICE)]

    assert missing(results, folder, has_ended=False) == (1, 3, 4)
    assert missing(results, folder, has_ended=True) == (1,)
    assert missing([], StudyFolder(tmp_path / "nothing"), has_ended=False) == ()
    assert unfinished(has_ended=False).state is TrialState.RUNNING
    assert unfinished(has_ended=True).state is TrialState.FAIL
