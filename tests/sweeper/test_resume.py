"""The same command again goes on with a study: to its total, with the same draws, and with nothing else."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from fake_launcher import FakeSlots, Outcome

from memsweep.config.store import register
from memsweep.record.asked import Asked, Origin
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Crashed, Interrupted, Measured, Phase
from memsweep.record.trial import TrialResult, read_results

Run = Callable[..., Outcome]

TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
PLAIN = {"x": 0, "y": 0}
SPACE = ["x=range(0,7)", "y=range(0,7)"]
SLOW_SAMPLERS = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("tpe", "nsgaii", "nsgaiii", "gp", "qmc", "grid")
]


def measure(number: int, values: Mapping[str, Any]) -> dict[str, float]:
    x, y = float(values.get("x", 0)), float(values.get("y", 0))
    return {"speed": 10 * x - y * y + (3 * x + 5 * y) % 4, "size": x * x + y + 1}


def stop_after(n_trials: int) -> Callable[[int, Mapping[str, Any]], Any]:
    """What trials return until Ctrl-C comes in the one after so many."""

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == n_trials:
            raise KeyboardInterrupt
        return measure(number, values)

    return task


def ended(results: tuple[TrialResult, ...]) -> list[tuple[Any, ...]]:
    """Return what trials that came to an end were asked for and gave."""
    return [
        (result.overrides, dict(result.measures), result.on_front, result.outcome.type, len(result.repeats))
        for result in results
        if not isinstance(result.outcome, Interrupted)
    ]


@pytest.mark.parametrize("sampler", ["structured", "random", *SLOW_SAMPLERS])
def test_with_one_slot_an_interrupted_study_becomes_what_it_would_have_been(
    run_sweep: Run, tmp_path: Path, sampler: str
) -> None:
    settings = {"config": PLAIN, "n_trials": 14, "sampler": sampler, **TWO}
    whole = ended(run_sweep(SPACE, measure, **settings).results)
    (tmp_path / "study").rename(tmp_path / "whole")
    assert run_sweep(SPACE, stop_after(4), **settings).exit_code == 130
    assert run_sweep(SPACE, stop_after(11), **settings).exit_code == 130
    outcome = run_sweep(SPACE, measure, **settings)

    assert outcome.exit_code == 0
    assert ended(outcome.results) == whole
    assert [result.number for result in outcome.results] == list(range(16))


def test_what_was_finished_is_not_run_again_and_not_written_again(run_sweep: Run) -> None:
    first = run_sweep(SPACE, stop_after(5), config=PLAIN, n_trials=9, **TWO)
    folders = [first.folder.trial(number).path for number in range(5)]
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for f in folders for path in f.rglob("*.json")
    }
    outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=9, **TWO)

    assert [number for number, _ in outcome.launcher.launched] == [6, 7, 8, 9]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert outcome.study.ended == "9 trials"


def test_the_total_may_grow_and_what_is_there_counts(run_sweep: Run) -> None:
    run_sweep(SPACE, measure, config=PLAIN, n_trials=4, **TWO)
    same = run_sweep(SPACE, measure, config=PLAIN, n_trials=4, **TWO)
    more = run_sweep(SPACE, measure, config=PLAIN, n_trials=6, **TWO)

    assert same.launcher.launched == []
    assert same.exit_code == 0
    assert [number for number, _ in more.launcher.launched] == [4, 5]


def test_extra_trials_are_added_to_the_total_once_for_each_command_that_came_to_its_end(
    run_sweep: Run,
) -> None:
    run_sweep(SPACE, measure, config=PLAIN, n_trials=3, **TWO)
    extra = {"config": PLAIN, "n_trials": 3, "extra_trials": 4, **TWO}
    assert run_sweep(SPACE, stop_after(5), **extra).exit_code == 130
    ends = [run_sweep(SPACE, measure, **extra).study.ended for _ in range(2)]

    assert ends == ["7 trials", "11 trials"]


def test_draws_of_a_larger_total_are_not_those_of_before(run_sweep: Run) -> None:
    settings = {"config": PLAIN, "sampler": "random", "ladder": "off", **TWO}
    run_sweep(SPACE, measure, n_trials=8, **settings)
    outcome = run_sweep(SPACE, measure, n_trials=16, **settings)
    asked = [Asked.read(outcome.folder.trial(number)) for number in range(16)]

    assert [one.draw for one in asked] == [None, *range(15)]
    assert len({one.overrides for one in asked}) == 16


@pytest.mark.parametrize(("resume", "is_there"), [("never", True), ("require", False)])
def test_a_study_is_begun_or_continued_only_as_asked(run_sweep: Run, resume: str, is_there: bool) -> None:
    if is_there:
        run_sweep(SPACE, measure, config=PLAIN, n_trials=2, **TWO)
    outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=3, resume=resume, **TWO)

    assert outcome.exit_code == 2
    assert f"hydra.sweeper.resume={resume}" in outcome.stderr
    assert "hydra.sweeper.study_name=" in outcome.stderr
    assert outcome.launcher.launched == []


def test_a_trial_whose_controller_was_killed_is_closed_and_asked_again_once(run_sweep: Run) -> None:
    settings = {"config": PLAIN, "n_trials": 4, **TWO}
    folder = run_sweep(SPACE, measure, **settings).folder
    folder.trial(3).outcome.unlink()  # as if it had been under way
    second = run_sweep(SPACE, measure, **settings)
    assert [number for number, _ in second.launcher.launched] == [4]
    assert second.overrides[0] == list(second.results[3].overrides)
    assert Asked.read(folder.trial(4)).again_of == 3
    folder.trial(4).outcome.unlink()
    third = run_sweep(SPACE, measure, **settings)

    assert isinstance(third.results[3].outcome, Interrupted)
    assert isinstance(third.results[4].outcome, Interrupted)
    assert Asked.read(folder.trial(5)).origin is not Origin.AGAIN
    assert third.study.ended == "4 trials"


def test_a_trial_that_is_to_be_tried_again_is_when_its_controller_was_killed(run_sweep: Run) -> None:
    settings = {"config": PLAIN, "n_trials": 3, **TWO}
    folder = run_sweep(SPACE, measure, **settings).folder
    file = folder.trial(2).outcome
    record = json.loads(file.read_text())
    busy = Crashed(reason="CUDA device busy", phase=Phase.BUILD, may_pass=True)
    record["outcome"] = {"type": "crashed", "reason": busy.reason, "phase": "build", "may_pass": True}
    file.write_text(json.dumps(record))
    outcome = run_sweep(SPACE, measure, **settings)

    assert [result.outcome.type for result in outcome.results] == [
        "measured", "measured", "interrupted", "measured"
    ]  # fmt: skip


def test_repeats_are_those_of_an_undisturbed_study(run_sweep: Run, tmp_path: Path) -> None:
    settings = {"config": PLAIN, "n_trials": 8, "repeats": 2, "front_repeats": 2, **TWO}
    whole = run_sweep(SPACE, measure, **settings)
    (tmp_path / "study").rename(tmp_path / "whole")
    found: list[list[str]] = []
    for n_runs in (3, 9, 15, 20, 100):
        left = [n_runs - len(found)]

        def task(number: int, values: Mapping[str, Any], left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return measure(number, values)

        outcome = run_sweep(SPACE, task, **settings)
        found += outcome.overrides if outcome.exit_code == 0 else outcome.overrides[:-1]

    assert outcome.exit_code == 0
    assert [overrides[:2] for overrides in found] == [overrides[:2] for overrides in whole.overrides]
    assert ended(outcome.results) == ended(whole_results(tmp_path))


def whole_results(tmp_path: Path) -> tuple[TrialResult, ...]:
    return read_results(StudyFolder(tmp_path / "whole").results)


def test_no_repeat_is_lost_where_the_total_grows(run_sweep: Run) -> None:
    settings = {"config": PLAIN, "repeats": 2, "front_repeats": 1, **TWO}
    before = run_sweep(SPACE, measure, n_trials=5, **settings).results
    after = {result.number: result for result in run_sweep(SPACE, measure, n_trials=8, **settings).results}

    assert all(len(after[result.number].repeats) >= len(result.repeats) for result in before)


def test_slots_go_on_too(run_sweep: Run) -> None:
    settings = {"config": PLAIN, "n_trials": 9, **TWO}
    first = run_sweep(SPACE, stop_after(5), launcher=FakeSlots(measure, 2), **settings)
    assert first.exit_code == 130
    n_ended = sum(isinstance(result.outcome, Measured) for result in first.results)
    outcome = run_sweep(SPACE, measure, launcher=FakeSlots(measure, 2), **settings)

    assert len(outcome.launcher.launched) == 9 - n_ended
    assert sum(isinstance(result.outcome, Measured) for result in outcome.results) == 9
    assert len({result.number for result in outcome.results}) == len(outcome.results)


def test_limits_of_time_count_what_was_spent_before(run_sweep: Run) -> None:
    def slow(number: int, values: Mapping[str, Any]) -> Any:
        time.sleep(0.1)
        return measure(number, values)

    run_sweep(SPACE, slow, config=PLAIN, n_trials=5, **TWO)
    outcome = run_sweep(SPACE, slow, config=PLAIN, n_trials=30, max_seconds=0.5, **TWO)

    assert outcome.launcher.launched == []
    assert outcome.study.ended is not None
    assert "of 0.50 s are over" in outcome.study.ended


# What is another study, and what is not.


def test_another_space_is_refused_key_by_key_with_the_ways_out(run_sweep: Run) -> None:
    run_sweep(["x=1,2", "y=range(0,3)"], measure, config={**PLAIN, "z": 1}, n_trials=3, **TWO)
    outcome = run_sweep(
        ["x=2,3", "z=2"],
        measure,
        config={**PLAIN, "z": 1},
        objectives={"speed": "maximize", "size": "maximize"},
        constraints={"fits": {"measure": "size", "at_most": 9}},
    )

    assert outcome.exit_code == 2
    for sentence in (
        "x is searched over 2, 3; that does not hold all of 1, 2",
        "y is not searched any more; it was, over 0, 1, 2",
        "z is 2; it was 1",
        "the objectives are speed maximize, size maximize; they were speed maximize, size minimize",
        "the constraint fits is size at most 9.0; it was not there before",
        "hydra.sweeper.study_name=study-2 hydra.sweeper.warm_start=study",
        "to continue it: python app.py",
    ):
        assert sentence in outcome.stderr
    assert outcome.launcher.launched == []


@pytest.mark.parametrize(
    "wider",
    [
        pytest.param(["x=range(0,9)", "y=range(0,7)"], id="more values"),
        pytest.param([*SPACE, "z=1,2"], id="one more key", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("sampler", ["structured", *SLOW_SAMPLERS])
def test_a_space_may_grow_and_keeps_what_was_tried(run_sweep: Run, wider: list[str], sampler: str) -> None:
    settings = {"config": {**PLAIN, "z": 1}, "sampler": sampler, "storage": "auto", **TWO}
    before = run_sweep(SPACE, measure, n_trials=10, **settings).results
    outcome = run_sweep(wider, measure, n_trials=20, **settings)
    tried = {
        tuple(sorted({*overrides, "z=1"} if len(overrides) == 2 else overrides))
        for overrides in outcome.overrides
    }
    were = {tuple(sorted({*result.overrides, "z=1"})) for result in before}

    assert outcome.exit_code == 0
    assert len(outcome.overrides) == 10
    assert not tried & were
    assert ended(outcome.results)[:10] == [
        (*one[:2], outcome.results[place].on_front, *one[3:]) for place, one in enumerate(ended(before))
    ]
    stored = optuna.load_study(study_name=outcome.study.name, storage=f"sqlite:///{outcome.folder.storage}")
    assert [trial.user_attrs["number"] for trial in stored.trials] == list(range(20))


def test_a_key_that_was_fixed_may_be_searched_with_that_value_among_others(run_sweep: Run) -> None:
    run_sweep(["x=1,2,3", "y=2"], measure, config=PLAIN, **TWO)
    outcome = run_sweep(["x=1,2,3", "y=1,2"], measure, config=PLAIN, **TWO)

    assert outcome.exit_code == 0
    assert sorted(map(sorted, outcome.overrides)) == [["x=1", "y=1"], ["x=2", "y=1"], ["x=3", "y=1"]]


def test_a_study_in_which_nothing_has_ended_binds_nobody(run_sweep: Run) -> None:
    assert run_sweep(["x=1,2"], stop_after(0), config=PLAIN, **TWO).exit_code == 130
    outcome = run_sweep(["y=1,2"], measure, config=PLAIN, **TWO)

    assert outcome.exit_code == 0
    assert outcome.overrides == [["y=1"], ["y=2"]]


def test_prose_of_an_option_is_no_setting_and_a_setting_is(
    run_sweep: Run, technique_app: Path, tmp_path: Path
) -> None:
    def run(n_trials: int) -> Outcome:
        register(technique_app)
        return run_sweep([], lambda *_: {"speed": 1.0, "size": 1.0}, n_trials=n_trials)

    run(3)
    file = technique_app / "technique" / "adapter" / "lora.yaml"
    file.write_text(file.read_text().replace("costs: a test", "costs: quite something else"))
    assert run(4).exit_code == 0
    file.write_text(file.read_text().replace("type: lora", "type: dora"))
    outcome = run(5)

    assert outcome.exit_code == 2
    assert "what technique/adapter=lora sets has changed" in outcome.stderr


def test_another_option_of_a_technique_may_be_tried_as_well(run_sweep: Run, technique_app: Path) -> None:
    task: Any = lambda *_: {"speed": 1.0, "size": 1.0}  # noqa: E731
    run_sweep(["technique/adapter=baseline,lora"], task)
    outcome = run_sweep(["technique/adapter=baseline,lora,ia3", "technique/packing=baseline,bfd"], task)
    asked = [tuple(overrides) for overrides in outcome.overrides]

    assert outcome.exit_code == 0
    assert ("technique/adapter=baseline", "technique/packing=baseline") not in asked
    assert ("technique/adapter=lora", "technique/packing=baseline") not in asked
    assert len(asked) == len(set(asked)) == 4


# Without a name: the study that the same command began and did not end.


def unnamed(run_sweep: Run, tmp_path: Path, task: Any, x: str = "x=1,2,3", **settings: Any) -> Outcome:
    where = f"{tmp_path}/" + "${hydra.sweeper.study_name}"
    return run_sweep([x], task, config=PLAIN, sweep_dir=where, **{**TWO, **settings})


def test_without_a_name_the_same_command_goes_on_and_another_begins_anew(
    run_sweep: Run, tmp_path: Path
) -> None:
    def studies() -> list[str]:
        return sorted(file.parent.name for file in tmp_path.glob("*/study.json"))

    unnamed(run_sweep, tmp_path, stop_after(1))
    assert len(studies()) == 1
    unnamed(run_sweep, tmp_path, measure, x="x=1,2")  # another command
    assert len(studies()) == 2
    unnamed(run_sweep, tmp_path, measure)  # the first once more
    assert len(studies()) == 2
    unnamed(run_sweep, tmp_path, measure)  # and once it has ended, a new one
    assert len(studies()) == 3
    unnamed(run_sweep, tmp_path, stop_after(1))
    unnamed(run_sweep, tmp_path, measure, resume="never")
    assert len(studies()) == 5


def test_a_study_of_an_older_version_is_not_continued(run_sweep: Run) -> None:
    folder = run_sweep(SPACE, measure, config=PLAIN, n_trials=2, **TWO).folder
    for number in range(2):
        folder.trial(number).asked.unlink()
    outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=3, **TWO)

    assert outcome.exit_code == 2
    assert "already holds 2 trial(s), and cannot be continued" in outcome.stderr


def test_what_goes_on_is_said(run_sweep: Run, caplog: pytest.LogCaptureFixture) -> None:
    run_sweep(SPACE, stop_after(3), config=PLAIN, n_trials=5, **TWO)
    with caplog.at_level(logging.INFO):
        run_sweep(SPACE, measure, config=PLAIN, n_trials=5, **TWO)

    assert "continues the study: 3 trial(s) have finished before" in caplog.messages


def test_the_folder_of_a_trial_says_what_was_asked_before_it_runs(run_sweep: Run, tmp_path: Path) -> None:
    seen = []

    def task(number: int, values: Mapping[str, Any]) -> Any:
        seen.append(Asked.read(StudyFolder(tmp_path / "study").trial(number)))
        return measure(number, values)

    outcome = run_sweep(["x=1,2", "y=3"], task, config=PLAIN, **TWO)

    assert [asked.overrides for asked in seen] == [tuple(one) for one in outcome.overrides]
    assert [asked.is_baseline for asked in seen] == [True, False]
