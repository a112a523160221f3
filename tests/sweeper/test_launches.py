"""Jobs through any launcher: what may pass is tried again, and its last end counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import FakeLauncher, Outcome

from hydra_plugins.pareto_sweeper import _launches
from hydra_plugins.pareto_sweeper._launches import Job, Launches
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Measured, Phase, to_mapping
from memsweep.record.study import Direction
from memsweep.record.trial import TrialRecord
from synthetic import study_of

Run = Callable[..., Outcome]

STUDY = study_of(2, objectives={"speed": Direction.MAXIMIZE}, constraints={}, reference={})
BUSY = to_mapping(Crashed(reason="CUDA device busy", phase=Phase.BUILD, may_pass=True))
BROKEN = to_mapping(Crashed(reason="a test", phase=Phase.BUILD))
FINE = {"speed": 1.0}


def ends(folder: Path, *answers: Any, n_jobs: int = 1) -> tuple[list[Any], FakeLauncher, list[float]]:
    """Launch jobs of which the first gives these answers in turn; return ends, launcher and pauses."""
    given, waited = iter(answers), list[float]()

    def task(number: int, values: Mapping[str, Any]) -> Any:
        return next(given) if number == 3 else FINE

    launcher = FakeLauncher(task)
    launches = Launches(launcher, are_named=True, wait=waited.append)
    jobs = [
        Job(number=number, overrides=(f"x={number}",), folder=folder / str(number))
        for number in range(3, 3 + n_jobs)
    ]
    return launches.run(jobs, STUDY, {}), launcher, waited


def test_a_busy_device_is_tried_again_under_the_same_number(tmp_path: Path) -> None:
    (end,), launcher, waited = ends(tmp_path, BUSY, FINE)

    assert isinstance(end.record.outcome, Measured)
    assert launcher.launched == [(3, ["x=3"]), (3, ["x=3"])]
    assert waited == [1.0]


def test_three_tries_are_enough_and_are_said(tmp_path: Path) -> None:
    (end,), launcher, waited = ends(tmp_path, BUSY, BUSY, BUSY)

    assert len(launcher.launched) == 3
    assert waited == [1.0, 5.0]
    assert end.record.outcome.reason == "CUDA device busy (tried 3 times)"
    assert TrialRecord.read(TrialFolder(tmp_path / "3")) == end.record


def test_what_earlier_tries_left_is_kept_apart(tmp_path: Path) -> None:
    ends(tmp_path, BUSY, BUSY, FINE)
    earlier = [TrialRecord.read(TrialFolder(tmp_path / "3" / "tries" / str(n))) for n in (1, 2)]

    assert [record.outcome.type for record in earlier] == ["crashed", "crashed"]
    assert TrialRecord.read(TrialFolder(tmp_path / "3")).outcome.type == "measured"
    assert sorted(path.name for path in (tmp_path / "3" / "tries").iterdir()) == ["1", "2"]


def test_what_will_not_pass_is_not_tried_again(tmp_path: Path) -> None:
    (end,), launcher, _ = ends(tmp_path, BUSY, BROKEN)

    assert len(launcher.launched) == 2
    assert end.record.outcome.reason == "a test"


def test_of_several_jobs_only_the_one_is_tried_again(tmp_path: Path) -> None:
    found, launcher, _ = ends(tmp_path, BUSY, FINE, n_jobs=3)

    assert [number for number, _ in launcher.launched] == [3, 4, 5, 3]
    assert all(isinstance(end.record.outcome, Measured) for end in found)


def test_only_the_last_end_is_entered_and_counted(run_sweep: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_launches, "PAUSES_SECONDS", (0.0, 0.0))
    n_tries = dict.fromkeys(range(4), 0)

    def task(number: int, values: Mapping[str, Any]) -> Any:
        n_tries[number] += 1
        return BUSY if number == 2 or (number == 1 and n_tries[number] == 1) else FINE

    outcome = run_sweep(["x=range(0,4)"], task, config={"x": 0}, n_trials=4, objectives={"speed": "maximize"})

    assert [result.outcome.type for result in outcome.results] == [
        "measured", "measured", "crashed", "measured"
    ]  # fmt: skip
    assert n_tries == {0: 1, 1: 2, 2: 3, 3: 1}
    assert outcome.results[2].outcome.text.endswith("(tried 3 times)")


def test_ctrl_c_in_another_try_loses_nothing_that_has_ended(
    run_sweep: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_launches, "PAUSES_SECONDS", (0.0, 0.0))
    tries: list[int] = []

    def task(number: int, values: Mapping[str, Any]) -> Any:
        tries.append(number)
        if tries.count(1) == 2:
            raise KeyboardInterrupt
        return BUSY if number == 1 else FINE

    outcome = run_sweep(["x=range(0,4)"], task, config={"x": 0}, n_jobs=3, objectives={"speed": "maximize"})

    assert outcome.exit_code == 130
    assert [result.outcome.type for result in outcome.results] == ["measured", "interrupted", "measured"]


def test_a_trial_knows_its_own_rivals_and_the_baseline_has_none(run_sweep: Run, technique_app: Path) -> None:
    def task(_: int, values: Mapping[str, Any]) -> dict[str, float]:
        return {"speed": 2.0 if values["technique/adapter"] != "baseline" else 1.0, "size": 1.0}

    outcome = run_sweep(["technique/adapter=baseline,lora,ia3"], task, sampler="grid")
    held = [mapping[number] for number, mapping in outcome.launcher.held]

    assert held[0] is None
    assert [rival.number for rival in held[2].best] == [1]
    assert held[2].objectives == outcome.study.objectives


def test_a_launcher_is_told_of_no_rivals_where_every_trial_is_measured_to_its_end(run_sweep: Run) -> None:
    outcome = run_sweep(
        ["x=range(0,4)"], lambda *_: 1.0, config={"x": 0}, cut_short=False, direction="minimize"
    )

    assert [mapping for _, mapping in outcome.launcher.held] == [{n: None} for n in range(4)]


def test_a_repeat_has_no_rivals(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,3)"], lambda *_: 1.0, config={"x": 0}, repeats=2, direction="minimize")
    by_number: dict[int, list[bool]] = {}
    for number, mapping in outcome.launcher.held:
        by_number.setdefault(number, []).append(mapping[number] is None)

    assert by_number == {0: [True, True], 1: [False, True], 2: [False, True]}
