"""Trials of other versions, another machine or other data share no front."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from fake_launcher import Outcome
from hydra.core.config_store import ConfigStore

from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Measured, Phase, Reused, to_mapping
from memsweep.record.trial import TrialRecord

Run = Callable[..., Outcome]

PLAIN = {"x": 0, "data": "a"}
TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
NOTE = "trials on other data than the first measured trial's are kept, and do not share its front"


def trains_on(number: int, values: Mapping[str, Any], **facts: Any) -> Any:
    """Leave a folder as a trial does, which says what data it trained on; others' are ten times as fast."""
    data = str(values["data"])
    speed = values["x"] * (1.0 if data == "a" else 10.0)
    outcome = Measured(measures={"speed": speed, "size": 1.0})
    defaults = {"conditions": {"data": data, "machine": "this"}, "versions": {"torch": "2.13.0"}}
    record = TrialRecord(outcome=outcome, **{**defaults, **facts})
    record.write(TrialFolder(Path("study/trials") / str(number)))
    return to_mapping(outcome)


def test_other_data_are_measured_and_never_on_the_front(run_sweep: Run) -> None:
    outcome = run_sweep(["data=a,b", "x=1,2"], trains_on, config=PLAIN, **TWO)
    others = [result for result in outcome.results if result.parameters["data"] == "b"]

    assert [(r.parameters["data"], r.parameters["x"]) for r in outcome.results if r.on_front] == [("a", "2")]
    assert all(result.objectives and not result.feasible for result in others)
    assert {result.unlike for result in others} == {("other data than trial 0: b, not a",)}
    assert "other data than trial 0: b, not a" in outcome.stdout


def test_other_versions_and_machines_are_told_apart_too(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        conditions = {"data": "a", "machine": "that" if values["x"] == 2 else "this"}
        versions = {"torch": "2.14.0" if values["x"] == 3 else "2.13.0"}
        return trains_on(number, {**values, "data": "a"}, conditions=conditions, versions=versions)

    outcome = run_sweep(["x=1,2,3"], task, config=PLAIN, **TWO)
    unlike = {result.parameters["x"]: result.unlike for result in outcome.results}

    assert unlike == {
        "1": (),
        "2": ("other machine than trial 0: that, not this",),
        "3": ("other torch than trial 0: 2.14.0, not 2.13.0",),
    }


def test_the_study_says_what_its_front_was_measured_under(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 0:
            return to_mapping(Crashed(reason="a test", phase=Phase.BUILD))
        return trains_on(number, values)

    study = run_sweep(["data=a,b", "x=1"], task, config=PLAIN, **TWO).study

    assert study.compared_with == 1
    assert study.conditions == {"data": "b", "machine": "this"}
    assert study.trial_versions == {"torch": "2.13.0"}


def test_apps_that_record_no_conditions_have_one_front(run_sweep: Run) -> None:
    outcome = run_sweep(
        ["data=a,b", "x=1,2"], lambda _, v: {"speed": float(v["x"]), "size": 1.0}, config=PLAIN, **TWO
    )

    assert all(result.feasible for result in outcome.results)


def test_what_cannot_be_compared_bounds_nothing(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 0:
            return to_mapping(Crashed(reason="a test", phase=Phase.BUILD))
        return trains_on(number, {**values, "data": "a" if values["x"] == 2 else "b"})

    constraints = {"fast": {"measure": "speed", "at_least": "baseline"}}
    outcome = run_sweep(["x=1,2,9"], task, config=PLAIN, sampler="grid", constraints=constraints, **TWO)

    assert outcome.study.constraints["fast"].bound == 2.0
    assert outcome.results[2].constraints == {}


def test_the_sampler_and_the_storage_hear_that_it_is_not_on_offer(run_sweep: Run) -> None:
    outcome = run_sweep(["data=a,b", "x=1,2"], trains_on, config=PLAIN, storage="auto", **TWO)
    stored = optuna.load_study(study_name=outcome.study.name, storage=f"sqlite:///{outcome.folder.storage}")
    best = {trial.user_attrs["number"] for trial in stored.best_trials}

    assert best == {result.number for result in outcome.results if result.on_front}


@pytest.mark.parametrize("argument", ["trainer=sft,dpo", "++dataset.path=a,b"])
def test_a_search_over_what_decides_the_data_is_told_once_what_that_means(
    run_sweep: Run, technique_app: Path, caplog: pytest.LogCaptureFixture, argument: str
) -> None:
    ConfigStore.instance().store(group="trainer", name="dpo", node={"name": "dpo", "batch": 8})
    dry = run_sweep([argument], lambda *_: 1.0, dry_run=True)
    with caplog.at_level(logging.INFO):
        run_sweep([argument], lambda *_: {"speed": 1.0, "size": 1.0})

    assert dry.stdout.count(NOTE) == 1
    assert sum(NOTE in line for line in caplog.messages) == 1


def test_other_searches_are_told_nothing_of_data(run_sweep: Run, technique_app: Path) -> None:
    assert NOTE not in run_sweep([], lambda *_: 1.0, dry_run=True).stdout


def test_what_reuses_a_measurement_that_cannot_be_compared_cannot_be_either(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number < 2:
            return trains_on(number, values)
        outcome = Reused(trial=1, measures={})
        TrialRecord(outcome=outcome).write(TrialFolder(Path("study/trials") / str(number)))
        return to_mapping(outcome)

    outcome = run_sweep(["data=a,b,c", "x=1"], task, config=PLAIN, sampler="grid", **TWO)
    source, reused = outcome.results[1:]

    assert reused.reused_from == source.number
    assert reused.unlike == source.unlike != ()
    assert not reused.feasible
