"""The copy for Optuna's own tools agrees with the files, and cannot harm them."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from fake_launcher import Outcome

from memsweep.record.outcome import OutOfMemory, Phase, to_mapping

Run = Callable[..., Outcome]

TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
CONSTRAINED = {"constraints": {"budget": {"measure": "size", "at_most": 40}}}
PLAIN = {"x": 0, "y": 0}


def task(number: int, values: Mapping[str, Any]) -> Any:
    x, y = int(values["x"]), int(values["y"])
    if x * y > 30:
        memory = OutOfMemory(where="device", phase=Phase.BUILD, requested_bytes=1, held_bytes=1, evidence="")
        return to_mapping(memory)
    if (x, y) == (1, 1):
        raise ValueError("a test")
    return {"speed": 10.0 * x + (x * 7 + y * 3) % 11, "size": 5.0 * x + y}


def stored(outcome: Outcome) -> optuna.Study:
    return optuna.load_study(study_name=outcome.study.name, storage=f"sqlite:///{outcome.folder.storage}")


def test_optunas_best_trials_are_our_front(run_sweep: Run) -> None:
    arguments = ["x=range(0,8)", "y=range(0,8)"]
    settings = {"n_trials": 40, "sampler": "random", "storage": "auto", **TWO, **CONSTRAINED}
    outcome = run_sweep(arguments, task, config=PLAIN, **settings)
    best = {trial.user_attrs["number"] for trial in stored(outcome).best_trials}

    assert best == {result.number for result in outcome.results if result.on_front}
    assert best


def test_every_trial_is_there_under_its_number(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,3)", "y=1,2"], task, config=PLAIN, storage="auto", **TWO)
    study = stored(outcome)

    assert study.metric_names == ["speed", "size"]
    assert [trial.user_attrs["number"] for trial in study.trials] == [r.number for r in outcome.results]
    assert [trial.params for trial in study.trials] == [
        {"x": int(r.parameters["x"]), "y": r.parameters["y"]} for r in outcome.results
    ]


def test_the_dashboards_older_form_of_constraints_is_there_too(run_sweep: Run) -> None:
    outcome = run_sweep(["x=1,2", "y=1,2"], task, config=PLAIN, storage="auto", **TWO, **CONSTRAINED)
    complete = [t for t in stored(outcome).trials if t.state is optuna.trial.TrialState.COMPLETE]

    assert all(len(trial.system_attrs["constraints"]) == 2 for trial in complete)


def test_a_crash_is_stored_with_its_reason(run_sweep: Run) -> None:
    outcome = run_sweep(["x=1,2", "y=1,2"], task, config=PLAIN, storage="auto", **TWO)
    failed = [t for t in stored(outcome).trials if t.state is optuna.trial.TrialState.FAIL]

    assert [trial.user_attrs["reason"] for trial in failed] == ["crashed in start: ValueError: a test"]


def test_a_baseline_outside_the_space_is_stored_without_that_parameter(
    run_sweep: Run, technique_app: Path
) -> None:
    outcome = run_sweep(
        ["technique/adapter=lora,ia3", "technique/packing=baseline,bfd"],
        lambda *_: {"speed": 1.0, "size": 1.0},
        storage="auto",
    )

    assert stored(outcome).trials[0].params == {"technique/packing": "baseline"}


def test_a_storage_that_cannot_be_written_costs_one_warning(
    run_sweep: Run, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "another.db").write_text("no database")
    with caplog.at_level(logging.WARNING):
        outcome = run_sweep(
            ["x=1,2", "y=1,2"], task, config=PLAIN, storage=f"sqlite:///{tmp_path}/another.db", **TWO
        )
    warnings = [record for record in caplog.records if "left behind" in record.message]

    assert len(warnings) == 1
    assert outcome.exit_code == 0
    assert len(outcome.results) == 4


def test_a_storage_that_nothing_could_ever_be_written_to_is_refused(run_sweep: Run, tmp_path: Path) -> None:
    outcome = run_sweep(["x=1,2"], task, config=PLAIN, storage="sqlite:////nowhere/study.db", **TWO)

    assert outcome.exit_code == 2
    assert (
        "hydra.sweeper.storage=sqlite:////nowhere/study.db is in a folder that is not there" in outcome.stderr
    )
    assert not outcome.folder.path.exists()


def test_a_name_taken_in_a_shared_storage_is_refused(run_sweep: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    optuna.create_study(storage=url, study_name="mine")
    outcome = run_sweep(["x=1,2", "y=1"], task, config=PLAIN, storage=url, study_name="mine", **TWO)

    assert outcome.exit_code == 2
    assert "already has a study 'mine'" in outcome.stderr
    assert outcome.overrides == []
    assert not outcome.folder.path.exists()


def test_the_command_that_shows_it_is_said_at_the_start(
    run_sweep: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        outcome = run_sweep(["x=1,2", "y=1"], task, config=PLAIN, storage="auto", **TWO)

    assert f"watch:  memsweep dashboard {outcome.folder.path}" in caplog.messages


def test_another_programs_database_is_left_alone(run_sweep: Run, tmp_path: Path) -> None:
    other = tmp_path / "bookmarks.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.commit()
    before = other.read_bytes()

    outcome = run_sweep(["x=1,2", "y=1"], task, config=PLAIN, storage=f"sqlite:///{other}", **TWO)

    assert outcome.exit_code == 0
    assert other.read_bytes() == before
