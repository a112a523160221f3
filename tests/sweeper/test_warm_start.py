"""A study that begins with what an earlier one knows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import Outcome

from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured, to_mapping
from memsweep.record.trial import TrialRecord

Run = Callable[..., Outcome]

TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
SPACE = [f"{name}=range(0,4)" for name in "wxyz"]
CONFIG = dict.fromkeys("wxyz", 0)


def measure(_: int, given: Mapping[str, Any]) -> dict[str, float]:
    """Return figures whose best cells are known: w makes fast, x small, y and z cost."""
    speed = 10.0 * 2 ** (given["w"] - 0.3 * given["y"] - 0.2 * given["z"])
    return {"speed": speed, "size": 100.0 * 2 ** (0.8 * given["w"] - given["x"] + 0.2 * given["z"])}


def earlier(run_sweep: Run, tmp_path: Path, n_trials: int = 40, **settings: Any) -> Outcome:
    """Run a study and put it aside as `earlier`; how its trials were chosen is all the same."""
    given = {"sampler": "random", **TWO, **settings}
    outcome = run_sweep(SPACE, measure, config=CONFIG, n_trials=n_trials, **given)
    (tmp_path / "study").rename(tmp_path / "earlier")
    outcome.folder = type(outcome.folder)(tmp_path / "earlier")
    return outcome


def given(overrides: list[str]) -> tuple[str, ...]:
    """Return a trial's overrides in an order of their own."""
    return tuple(sorted(overrides))


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What a study says while it runs."""
    caplog.set_level(logging.INFO)
    return caplog


def test_the_front_of_the_earlier_study_is_measured_again_first(
    run_sweep: Run, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    before = earlier(run_sweep, tmp_path)
    wanted = {given(list(result.overrides)) for result in before.results if result.on_front}
    after = run_sweep(SPACE, measure, config=CONFIG, n_trials=20, warm_start="earlier", **TWO)
    tried = [given(overrides) for overrides in after.overrides]

    assert len(wanted) > 2
    assert wanted <= set(tried[: len(wanted) + 1])
    assert len(set(tried)) == len(tried) == 20
    assert "40 of 40 trials of app-" in said.text
    assert "are in this space and teach the sampler" in said.text


def test_what_is_known_already_is_not_looked_for_again(run_sweep: Run, tmp_path: Path) -> None:
    before = earlier(run_sweep, tmp_path)
    known = {given(list(result.overrides)) for result in before.results if not result.on_front}
    after = run_sweep(SPACE, measure, config=CONFIG, n_trials=20, warm_start="earlier", **TWO)
    again = [overrides for overrides in after.overrides if given(overrides) in known]

    assert [given(overrides) for overrides in again] in ([], [given(after.overrides[0])])


def test_figures_of_the_earlier_study_are_in_no_file_of_the_new_one(run_sweep: Run, tmp_path: Path) -> None:
    earlier(run_sweep, tmp_path)
    after = run_sweep(SPACE, measure, config=CONFIG, n_trials=6, warm_start="earlier", **TWO)

    assert len(after.results) == 6
    assert [result.number for result in after.results] == [*range(6)]


def on(machine: str) -> Callable[[int, Mapping[str, Any]], Any]:
    """Return a task that leaves a folder as a trial does, which says where it was measured."""

    def task(number: int, values: Mapping[str, Any]) -> Any:
        outcome = Measured(measures=measure(number, values))
        record = TrialRecord(outcome=outcome, conditions={"machine": machine})
        record.write(TrialFolder(Path("study/trials") / str(number)))
        return to_mapping(outcome)

    return task


def test_a_study_about_something_else_is_refused_with_every_difference(
    run_sweep: Run, tmp_path: Path
) -> None:
    earlier(run_sweep, tmp_path, n_trials=3)
    other = {"objectives": {"speed": "maximize", "loss": "minimize"}}
    after = run_sweep(SPACE, measure, config=CONFIG, n_trials=5, warm_start="earlier", **other)

    assert after.exit_code == 2
    assert after.launcher.launched == []
    assert "its objectives are speed maximize, size minimize" in after.stderr


def test_a_study_that_is_not_there_is_refused(run_sweep: Run) -> None:
    after = run_sweep(SPACE, measure, config=CONFIG, n_trials=5, warm_start="nowhere", **TWO)

    assert after.exit_code == 2
    assert "warm_start: nowhere holds no study" in after.stderr


def test_trials_that_this_space_does_not_hold_are_left_out(
    run_sweep: Run, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    before = earlier(run_sweep, tmp_path)
    smaller = [*SPACE[:3], "z=0"]
    fitting = [result for result in before.results if result.parameters["z"] == "0"]
    run_sweep(smaller, measure, config=CONFIG, n_trials=5, warm_start="earlier", **TWO)

    assert 0 < len(fitting) < 40
    assert f"{len(fitting)} of 40 trials of app-" in said.text


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_samplers_that_cannot_learn_from_it_still_begin_with_its_front(
    run_sweep: Run, tmp_path: Path, sampler: str
) -> None:
    before = earlier(run_sweep, tmp_path, n_trials=15)
    wanted = {given(list(result.overrides)) for result in before.results if result.on_front}
    after = run_sweep(
        SPACE, measure, config=CONFIG, n_trials=15, warm_start="earlier", sampler=sampler, **TWO
    )

    assert wanted <= {given(overrides) for overrides in after.overrides[: len(wanted) + 1]}


def test_what_was_measured_elsewhere_is_not_believed(
    run_sweep: Run, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    run_sweep(SPACE, on("this"), config=CONFIG, n_trials=10, **TWO)
    (tmp_path / "study").rename(tmp_path / "earlier")
    after = run_sweep(SPACE, on("that"), config=CONFIG, n_trials=5, warm_start="earlier", **TWO)

    assert "nothing is taken from app-" in said.text
    assert "other machine than trial 0: this, not that" in said.text
    assert after.exit_code == 0
