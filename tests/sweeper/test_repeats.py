"""Set-ups are measured again, and the front is that of the medians."""

from __future__ import annotations

import csv
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from fake_launcher import Outcome

from hydra_plugins.pareto_sweeper._repeats import of_the_same
from memsweep.record.folder import StudyFolder, TrialFolder
from memsweep.record.outcome import Measured, NotInForce, OutOfMemory, Phase, to_mapping
from memsweep.record.trial import TrialRecord, read_results
from synthetic import measured

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., Outcome]

PLAIN = {"x": 0, "y": 0}
TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
SUBDIR = "hydra.sweep.subdir"
OUT_OF_MEMORY = OutOfMemory(
    where="device", phase=Phase.MEASURE, requested_bytes=2**30, held_bytes=None, evidence="a test"
)


def front(values: Mapping[str, Any]) -> dict[str, float]:
    """Figures with which every x is on the front."""
    return {"speed": 10.0 * values["x"], "size": float(values["x"])}


def is_repeat(values: Mapping[str, Any]) -> bool:
    return SUBDIR in values


def repeats_of(outcome: Outcome) -> list[tuple[int, str]]:
    """Return trial number and folder of every repeat launched, in their order."""
    found = []
    for number, overrides in outcome.launcher.launched:
        found += [(number, text.split("=")[1].strip("'")) for text in overrides if text.startswith(SUBDIR)]
    return found


def test_each_set_up_is_measured_n_times(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,6)"], lambda _, v: front(v), config=PLAIN, repeats=3, **TWO)

    assert Counter(number for number, _ in outcome.launcher.launched) == dict.fromkeys(range(6), 3)
    assert all(len(result.repeats) == 2 for result in outcome.results)
    assert len(outcome.results) == 6


def test_repeats_come_at_later_places_and_not_all_at_the_end(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,30)"], lambda _, v: front(v), config=PLAIN, repeats=2, n_trials=20, **TWO)
    order = [number for number, _ in outcome.launcher.launched]
    is_again = [any(text.startswith(SUBDIR) for text in o) for _, o in outcome.launcher.launched]
    again = [number for number, is_one in zip(order, is_again, strict=True) if is_one]

    assert any(is_again[:20])
    assert again != sorted(again)
    assert [number for number, is_one in zip(order, is_again, strict=True) if not is_one] == [*range(20)]


def test_repeats_leave_the_trials_as_they_would_have_been(run_sweep: Run, tmp_path: Path) -> None:
    arguments = ["x=range(0,9)", "y=range(0,9)"]
    once = run_sweep(arguments, lambda _, v: front(v), config=PLAIN, n_trials=15, **TWO)
    (tmp_path / "study").rename(tmp_path / "once")
    twice = run_sweep(arguments, lambda _, v: front(v), config=PLAIN, n_trials=15, repeats=2, **TWO)

    assert [r.overrides for r in once.results] == [r.overrides for r in twice.results]


def test_a_repeat_has_the_trials_number_and_overrides_and_a_folder_inside_it(run_sweep: Run) -> None:
    outcome = run_sweep(["x=1,2", "y=3"], lambda _, v: front(v), config=PLAIN, front_repeats=2, **TWO)
    launched = [(n, o) for n, o in outcome.launcher.launched if any(SUBDIR in text for text in o)]
    by_number = {result.number: result for result in outcome.results}

    assert sorted(repeats_of(outcome)) == [
        (number, f"trials/{number}/repeats/{k}") for number in (0, 1) for k in (1, 2)
    ]
    assert all(tuple(o[:-1]) == by_number[n].overrides for n, o in launched)
    for number, place in repeats_of(outcome):
        record = TrialRecord.read(TrialFolder(outcome.folder.path / place))
        assert isinstance(record.outcome, Measured), number


def test_the_front_is_measured_again_in_rounds(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(1,6)"], lambda _, v: front(v), config=PLAIN, front_repeats=3, **TWO)
    order = [number for number, _ in repeats_of(outcome)]

    assert all(sorted(order[i : i + 5]) == [0, 1, 2, 3, 4] for i in (0, 5, 10))
    assert len(order) == 15
    assert order[:5] != order[5:10] or order[5:10] != order[10:]


def test_only_the_front_is_measured_again(run_sweep: Run) -> None:
    def task(_: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": float(values["x"]), "size": 1.0}

    outcome = run_sweep(["x=range(1,6)"], task, config=PLAIN, sampler="grid", front_repeats=2, **TWO)

    assert repeats_of(outcome) == [(4, "trials/4/repeats/1"), (4, "trials/4/repeats/2")]


def test_objectives_become_medians_and_measures_stay_the_first_runs(run_sweep: Run) -> None:
    speeds = {"x": iter((10.0, 30.0, 20.0))}

    def task(_: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": next(speeds["x"]), "size": 1.0}

    outcome = run_sweep(["x=1"], task, config=PLAIN, n_trials=1, front_repeats=2, **TWO)
    (result,) = outcome.results

    assert result.objectives == {"speed": 20.0, "size": 1.0}
    assert result.measures == {"speed": 10.0, "size": 1.0}
    assert result.values("speed") == (10.0, 30.0, 20.0)


def test_the_front_is_made_anew_and_newcomers_are_measured_too(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> dict[str, float]:
        lucky = values["x"] == 1 and not is_repeat(values)
        return {"speed": 100.0 if lucky else 10.0 * values["x"], "size": 1.0}

    outcome = run_sweep(["x=1,2,3"], task, config=PLAIN, sampler="grid", front_repeats=2, **TWO)
    members = [result.parameters["x"] for result in outcome.results if result.on_front]

    assert [number for number, _ in repeats_of(outcome)] == [0, 0, 2, 2]
    assert members == ["3"]


def test_newcomers_are_taken_in_at_most_twice(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": 0.0 if is_repeat(values) else 10.0 * values["x"], "size": 1.0}

    outcome = run_sweep(["x=range(1,7)"], task, config=PLAIN, sampler="grid", front_repeats=2, **TWO)

    assert [number for number, _ in repeats_of(outcome)] == [5, 5, 4, 4, 3, 3]


def test_constraints_are_judged_on_medians(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": 1.0, "size": 2.0 if is_repeat(values) else 1.0}

    budget = {"budget": {"measure": "size", "at_most": 1.5}}
    outcome = run_sweep(["x=1"], task, config=PLAIN, n_trials=1, repeats=3, constraints=budget, **TWO)

    assert outcome.results[0].constraints == {"budget": 0.5}
    assert outcome.exit_code == 1


def test_the_baseline_meets_a_demand_about_itself_whatever_its_repeats_say(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": 5.0 if is_repeat(values) else 10.0, "size": 1.0}

    fast = {"fast": {"measure": "speed", "at_least": "baseline"}}
    outcome = run_sweep(["x=1"], task, config=PLAIN, n_trials=1, repeats=3, constraints=fast, **TWO)

    assert outcome.results[0].feasible
    assert outcome.study.constraints["fast"].bound == 5.0


def test_a_repeat_that_crashes_is_a_remark_and_costs_nothing_else(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if is_repeat(values):
            raise ValueError("no such luck")
        return front(values)

    outcome = run_sweep(["x=1,2"], task, config=PLAIN, front_repeats=1, max_failure_rate=0.0, **TWO)

    assert outcome.exit_code == 0
    assert all(result.on_front for result in outcome.results)
    assert outcome.results[0].remarks == (
        "repeat 1 gave no figures: crashed in start: ValueError: no such luck",
    )


def test_a_repeat_out_of_memory_takes_its_set_up_off_the_front(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        return to_mapping(OUT_OF_MEMORY) if is_repeat(values) and values["x"] == 2 else front(values)

    outcome = run_sweep(["x=1,2"], task, config=PLAIN, front_repeats=1, **TWO)

    assert [result.feasible for result in outcome.results] == [True, False]
    assert "when it was measured again (repeat 1), so it fits only sometimes" in outcome.stdout


def test_what_reuses_a_measurement_follows_its_repeats(run_sweep: Run, technique_app: Path) -> None:
    def task(_: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": 5.0 if is_repeat(values) else 10.0, "size": 1.0}

    outcome = run_sweep(["technique/packing=baseline,bfd,again"], task, repeats=3)
    (reused,) = (result for result in outcome.results if result.reused_from is not None)
    source = outcome.results[reused.reused_from or 0]

    assert reused.objectives == source.objectives == {"speed": 5.0, "size": 1.0}
    assert reused.repeats == ()


def test_files_hold_medians_intervals_and_how_many_runs(run_sweep: Run) -> None:
    speeds = iter((10.0, 11.0, 12.0))
    outcome = run_sweep(
        ["x=1"],
        lambda *_: {"speed": next(speeds), "size": 1.0},
        config=PLAIN,
        n_trials=1,
        front_repeats=2,
        **TWO,
    )
    with outcome.folder.front.open() as file:
        (row,) = csv.DictReader(file)
    (solution,) = yaml.safe_load(outcome.folder.optimization_results.read_text())["solutions"]

    assert (row["speed"], row["n_runs"]) == ("11.0", "3")
    # 4.303 standard errors of the mean of 10, 11, 12 to each side.
    assert float(row["speed_low"]) == pytest.approx(11 - 4.303 / 3**0.5)
    assert float(row["speed_high"]) == pytest.approx(11 + 4.303 / 3**0.5)
    assert solution["values"] == [11.0, 1.0]
    assert solution["intervals"][0] == pytest.approx([11 - 4.303 / 3**0.5, 11 + 4.303 / 3**0.5])
    assert solution["n_runs"] == 3


def test_ctrl_c_in_a_repeat_keeps_what_is_finished(run_sweep: Run) -> None:
    n_repeats = iter(range(9))

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if is_repeat(values) and next(n_repeats) == 2:
            raise KeyboardInterrupt
        return front(values)

    outcome = run_sweep(["x=1,2"], task, config=PLAIN, front_repeats=2, **TWO)
    kinds = Counter(repeat.type for result in outcome.results for repeat in result.repeats)

    assert outcome.exit_code == 130
    assert outcome.study.ended == "interrupted"
    assert kinds == {"measured": 2, "interrupted": 1}
    assert all(result.on_front for result in outcome.results)


def test_a_study_with_too_many_failures_measures_nothing_again(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number:
            raise ValueError("never")
        return front(values)

    outcome = run_sweep(["x=range(1,9)"], task, config=PLAIN, front_repeats=2, max_failure_rate=0.1, **TWO)

    assert repeats_of(outcome) == []


def test_the_app_says_how_often_where_the_sweeper_is_not_told(run_sweep: Run, tmp_path: Path) -> None:
    config = {**PLAIN, "measure": {"repeats": 2, "front_repeats": 1}}
    outcome = run_sweep(["x=1,2"], lambda _, v: front(v), config=config, **TWO)
    (tmp_path / "study").rename(tmp_path / "first")
    told = run_sweep(["x=1,2"], lambda _, v: front(v), config=config, repeats=1, front_repeats=0, **TWO)

    assert len(repeats_of(outcome)) == 4
    assert repeats_of(told) == []


@pytest.mark.parametrize("key, value", [("repeats", 0), ("front_repeats", -1), ("repeats", "null")])
def test_how_often_is_a_number_that_can_be(run_sweep: Run, key: str, value: Any) -> None:
    outcome = run_sweep(["x=1,2"], lambda _, v: front(v), config=PLAIN, **{key: value}, **TWO)

    if value == "null":
        assert outcome.exit_code == 0
    else:
        assert outcome.exit_code == 2
        assert f"hydra.sweeper.{key} must be a whole number of at least {value + 1}" in outcome.stderr


def test_the_storage_keeps_the_first_run_and_says_so(run_sweep: Run) -> None:
    def task(_: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": 5.0 if is_repeat(values) else 10.0, "size": 1.0}

    outcome = run_sweep(["x=1"], task, config=PLAIN, n_trials=1, repeats=3, storage="auto", **TWO)
    stored = optuna.load_study(study_name=outcome.study.name, storage=f"sqlite:///{outcome.folder.storage}")

    assert [trial.values for trial in stored.trials] == [[10.0, 1.0]]
    assert stored.user_attrs["figures"].startswith("of each trial's first run; medians")


def test_what_is_measured_again_is_said(run_sweep: Run, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run_sweep(["x=1,2"], lambda _, v: front(v), config=PLAIN, front_repeats=1, **TWO)

    assert "the front is measured once more at the end" in caplog.messages
    assert any(line.startswith("measuring the front again (2 of 2): trial ") for line in caplog.messages)


def test_a_dry_run_counts_the_repeats(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep([], lambda *_: 1.0, dry_run=True, repeats=3, front_repeats=2)

    assert "each set-up is measured 3 times, and the front is measured 2 times more" in outcome.stdout
    assert "about 7 min 30 s for 15 trials, 3 times, at 10 s each" in outcome.stdout


@pytest.mark.parametrize(
    "again, expected",
    [
        ({"effective_hash": "b"}, "other settings in force than in trial 7: b, not a"),
        ({"versions": {"torch": "2.14.0"}}, "other torch than trial 7: 2.14.0, not 2.13.0"),
        ({"conditions": {"machine": "another"}}, "other machine than trial 7: another, not this"),
    ],
)
def test_a_repeat_of_something_else_is_no_measurement_of_its_trial(
    again: dict[str, Any], expected: str
) -> None:
    same: dict[str, Any] = {
        "effective_hash": "a",
        "versions": {"torch": "2.13.0"},
        "conditions": {"machine": "this"},
    }
    trial = measured(7, {"adapter": "lora"}, **same)
    found = of_the_same(TrialRecord(outcome=trial.outcome, **{**same, **again}), trial)

    assert isinstance(found, NotInForce)
    assert expected in found.text
    assert of_the_same(TrialRecord(outcome=trial.outcome, **same), trial) == trial.outcome


def test_a_launcher_that_knows_set_ups_knows_none_in_a_repeat(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        place = Path("study") / str(values.get(SUBDIR, f"trials/{number}"))
        outcome = Measured(measures=front(values))
        TrialRecord(outcome=outcome, effective_hash=f"hash {number}").write(TrialFolder(place))
        return to_mapping(outcome)

    outcome = run_sweep(["x=1,2"], task, config=PLAIN, front_repeats=1, **TWO)

    assert outcome.launcher.knew == [{}, {"hash 0": 0}, {}, {}]
    assert [len(result.repeats) for result in outcome.results] == [1, 1]


@pytest.mark.slow
def test_a_trainer_measures_its_front_again(tmp_path: Path) -> None:
    typed = [
        "model=tiny",
        "measure=quick",
        "tracking=none",
        "technique/micro_batch=baseline,size",
        "hydra.sweeper.n_trials=2",
        "hydra.sweeper.front_repeats=1",
        "hydra.sweeper.study_name=test",
    ]
    process = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "-m", *typed],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=250,
    )
    folder = StudyFolder(tmp_path / "outputs" / "test")
    results = read_results(folder.results)
    members = [result for result in results if result.on_front]

    assert process.returncode == 0, process.stderr
    assert members
    assert all(isinstance(repeat, Measured) for result in members for repeat in result.repeats)
    for result in members:
        own, again = (
            folder.trial(result.number),
            TrialFolder(folder.trial(result.number).path / "repeats" / "1"),
        )
        assert len(result.values("tokens_per_second")) == 2
        assert again.overrides.read_text() == own.overrides.read_text()
        assert json.loads(again.effective.read_text()) == json.loads(own.effective.read_text())
        assert TrialRecord.read(again).conditions == TrialRecord.read(own).conditions != {}
