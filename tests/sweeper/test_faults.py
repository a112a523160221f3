"""Whatever breaks in a study's folder, the next run repairs it or says precisely what is wrong."""

from __future__ import annotations

import datetime
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from controllers import Controllers
from fake_launcher import Outcome

from memsweep.cli.command import main
from memsweep.record.folder import StudyFolder

Run = Callable[..., Outcome]

TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
PLAIN = {"x": 0, "y": 0}
SPACE = ["x=range(0,6)", "y=range(0,6)"]
FILES = ("results.jsonl", "front.csv", "optimization_results.yaml")


def measure(number: int, values: Mapping[str, Any]) -> dict[str, float]:
    x, y = float(values["x"]), float(values["y"])
    return {"speed": 10 * x - y * y, "size": x * x + y + 1}


@pytest.fixture
def study(run_sweep: Run) -> Callable[..., Outcome]:
    """A function that runs one study, or goes on with it."""

    def run(n_trials: int = 8, **settings: Any) -> Outcome:
        return run_sweep(
            SPACE, measure, config=PLAIN, n_trials=n_trials, **{"storage": "auto", **TWO, **settings}
        )

    return run


def contents(folder: StudyFolder) -> dict[str, bytes]:
    return {name: (folder.path / name).read_bytes() for name in FILES}


def stored(folder: StudyFolder, name: str) -> list[int]:
    trials = optuna.load_study(study_name=name, storage=f"sqlite:///{folder.storage}").trials
    return [trial.user_attrs["number"] for trial in trials]


def damage_storage(folder: StudyFolder, how: str) -> None:
    file = folder.storage
    if how == "deleted":
        file.unlink()
    elif how == "torn":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif how == "garbage":
        file.write_bytes(b"this is no database" * 1000)
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "other trials":
        study = optuna.load_study(study_name=None, storage=f"sqlite:///{file}")
        study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))


DAMAGES = ["deleted", "torn", "garbage", "empty", "other trials"]


def mostly_slow(first: str, *others: str) -> list[Any]:
    """Return parameters of which only the first is quick."""
    return [first, *(pytest.param(name, marks=pytest.mark.slow) for name in others)]


@pytest.mark.parametrize("how", mostly_slow("torn", *(name for name in DAMAGES if name != "torn")))
def test_a_storage_that_is_damaged_is_made_anew_from_the_folders(
    study: Callable[..., Outcome], caplog: pytest.LogCaptureFixture, how: str
) -> None:
    first = study()
    damage_storage(first.folder, how)
    with caplog.at_level(logging.INFO):
        outcome = study(10)
    said = [text for text in caplog.messages if "from the trial folders" in text]

    assert outcome.exit_code == 0
    assert stored(outcome.folder, outcome.study.name) == list(range(10))
    assert len(said) == 1, caplog.messages
    assert len(list(outcome.folder.path.glob("study.db.damaged-*"))) == (how not in ("deleted", "empty"))


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGES)
def test_rebuilding_makes_the_storage_anew_too(
    study: Callable[..., Outcome], how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    first = study()
    name = first.study.name
    damage_storage(first.folder, how)

    assert main(["rebuild", str(first.folder.path)]) == 0
    assert stored(first.folder, name) == list(range(8))


@pytest.mark.parametrize("how", mostly_slow("another", "deleted", "torn", "garbage"))
def test_results_that_are_damaged_are_made_anew_from_the_folders(
    study: Callable[..., Outcome], caplog: pytest.LogCaptureFixture, how: str
) -> None:
    first = study(repeats=2, front_repeats=1)
    before = contents(first.folder)
    results = first.folder.results
    text = results.read_text()
    if how == "deleted":
        results.unlink()
    elif how == "torn":
        results.write_text(text[: len(text) * 2 // 3])
    elif how == "another":
        lines = [json.loads(line) for line in text.splitlines()]
        lines[2]["overrides"] = ["x=99"]
        results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        results.write_bytes(b"\xff\x00\n{")
    with caplog.at_level(logging.INFO):
        outcome = study(repeats=2, front_repeats=1)
    said = [message for message in caplog.messages if message.startswith("results.jsonl is made anew")]

    assert outcome.launcher.launched == []
    assert contents(outcome.folder) == before
    assert len(said) == 1
    assert len(list(outcome.folder.path.glob("results.jsonl.damaged-*"))) == (how != "deleted")


def test_rebuilding_gives_back_every_file_as_it_was(
    study: Callable[..., Outcome], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = study(12, repeats=2, front_repeats=1).folder
    before = contents(folder)
    for name in FILES:
        (folder.path / name).unlink()

    assert main(["rebuild", str(folder.path)]) == 0
    assert contents(folder) == before
    assert "12 trial(s)" in capfd.readouterr().out


def test_rebuilding_makes_no_storage_where_there_is_to_be_none(
    study: Callable[..., Outcome], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = study(storage=None).folder

    assert main(["rebuild", str(folder.path)]) == 0
    assert not folder.storage.exists()


def test_a_study_that_is_thinned_is_reported_on_recommended_from_and_continued(
    study: Callable[..., Outcome], capfd: pytest.CaptureFixture[str]
) -> None:
    first = study(8)
    folder, before = first.folder, first.results
    kept = {result.number for result in before if result.on_front} | {0}
    for number in range(8):
        (folder.trial(number).path / "checkpoint").write_bytes(b"x" * 10_000)
    assert main(["clean", str(folder.path), "--keep", "front"]) == 0
    left = {int(path.parent.name) for path in folder.trials.glob("*/checkpoint")}

    assert left == kept
    assert main(["report", str(folder.path)]) == 0
    assert main(["recommend", str(folder.path)]) == 0
    outcome = study(10)
    assert [number for number, _ in outcome.launcher.launched] == [8, 9]
    assert [one.measures for one in outcome.results[:8]] == [one.measures for one in before]


def test_a_study_that_runs_is_not_thinned(run_sweep: Run, capfd: pytest.CaptureFixture[str]) -> None:
    said = []

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 3:
            command = [sys.executable, "-m", "memsweep", "clean", "study", "--keep", "none"]
            said.append(subprocess.run(command, capture_output=True, text=True, check=False))
        return measure(number, values)

    outcome = run_sweep(SPACE, task, config=PLAIN, n_trials=5, **TWO)

    assert said[0].returncode == 2, said[0]
    assert f"process {os.getpid()} on" in said[0].stderr
    assert outcome.exit_code == 0


def test_a_study_without_study_json_goes_on_by_the_same_command_and_is_not_rebuilt(
    study: Callable[..., Outcome], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = study().folder
    before = folder.results.read_bytes()
    folder.study.write_text('{"name": "torn')

    assert main(["rebuild", str(folder.path)]) == 2
    assert "type it again" in capfd.readouterr().err
    with caplog.at_level(logging.INFO):
        outcome = study()
    assert outcome.exit_code == 0
    assert outcome.launcher.launched == []
    assert folder.results.read_bytes() == before
    assert any("study.json cannot be read" in message for message in caplog.messages)


def test_an_outcome_that_is_torn_is_run_again(study: Callable[..., Outcome]) -> None:
    folder = study().folder
    folder.trial(5).outcome.write_text('{"outcome": {"type": "meas')
    outcome = study()

    assert [result.outcome.type for result in outcome.results].count("measured") == 8
    assert [number for number, _ in outcome.launcher.launched] == [8]
    assert folder.trial(5).outcome.with_name("outcome.json.damaged-1").exists()


def test_a_folder_that_does_not_say_what_was_asked_is_named(study: Callable[..., Outcome]) -> None:
    folder = study().folder
    folder.trial(5).asked.write_text("{")
    outcome = study()

    assert outcome.exit_code == 2
    assert str(folder.trial(5).path) in outcome.stderr
    assert "trial.json" in outcome.stderr


def test_a_clock_that_jumps_changes_nothing(
    study: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = study().results
    (tmp_path / "study").rename(tmp_path / "steady")
    now = [time.time()]

    def jumping() -> float:
        now[0] += -86_400 if int(now[0]) % 2 else 3 * 86_400
        return now[0]

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.datetime.fromtimestamp(jumping(), tz)

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(datetime, "datetime", Jumping)
    study(5)
    outcome = study(max_seconds=60)

    assert outcome.study.ended == "8 trials"
    assert [result.overrides for result in outcome.results] == [result.overrides for result in expected]
    assert all(0 <= seconds < 60 for result in outcome.results for seconds in result.seconds.values())


# What only a process of its own can be done to.


@pytest.fixture(scope="module")
def controllers() -> Iterator[Controllers]:
    with Controllers() as found:
        yield found


SETTINGS = {"n_trials": 10, "seed": 1}


def finishes(controllers: Controllers, folder: Path, settings: dict[str, Any]) -> list[str]:
    """Go on with a study, and return what its trials came to."""
    done = controllers.run(folder, SPACE, settings=settings)
    assert done["code"] == 0, done["printed"]
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return [line["outcome"]["type"] for line in lines if line["outcome"]["type"] != "interrupted"]


def test_a_full_disk_ends_a_study_in_words_and_loses_nothing(
    controllers: Controllers, tmp_path: Path
) -> None:
    """Files cannot grow: what an application is told is what a full disk tells it, but for the number."""
    folder = tmp_path / "study"
    settings = {**SETTINGS, "n_trials": 30, "sampler": "random"}
    full = controllers.run(folder, SPACE, settings=settings, limit_bytes=14_000)
    n_finished = len(list(folder.glob("trials/*/outcome.json")))

    assert full["code"] == 1, full["printed"]
    assert "cannot be written: File too large" in full["printed"]
    assert "no trial that has finished is lost" in full["printed"]
    assert "Traceback" not in full["printed"]
    assert 1 < n_finished < 30
    assert len(finishes(controllers, folder, settings)) == 30
    assert not list(folder.rglob("*.tmp"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 192 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only a superuser who may mount has a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_full_and_then_is_not(controllers: Controllers, small_disk: Path) -> None:
    folder = small_disk / "study"
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (120 << 10))
    full = controllers.run(folder, SPACE, settings=SETTINGS)

    assert full["code"] == 1, full["printed"]
    assert "No space left on device" in full["printed"]
    assert "Traceback" not in full["printed"]
    filler.unlink()
    assert len(finishes(controllers, folder, SETTINGS)) == 10


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    controllers: Controllers, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    controllers.run(folder, SPACE, settings=SETTINGS)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    who = {"user": 65_534} if os.geteuid() == 0 else {}
    for path in (tmp_path, *tmp_path.parents[:3]):
        path.chmod(0o755)
    folder.chmod(0o555)
    (folder / ".lock").chmod(0o444)
    try:
        done = controllers.run(folder, SPACE, settings={**SETTINGS, "n_trials": 12}, **who)
    finally:
        folder.chmod(0o755)

    assert done["code"] == 2, done["printed"]
    assert f"the study's folder {folder} cannot be written (Permission denied)" in done["printed"]
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_two_controllers_at_once_are_told_apart(controllers: Controllers, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    with Controllers() as others:
        others.begin(folder, ["x=range(0,12)", "y=range(0,12)"], settings={**SETTINGS, "n_trials": 100})
        while not (folder / "trials").is_dir():
            time.sleep(0.01)
        second = controllers.run(folder, SPACE, settings=SETTINGS)
        first = others.end()

    assert second["code"] == 2
    assert "is at work on the study in" in second["printed"]
    assert first["code"] == 0, first["printed"]


@pytest.mark.slow
def test_studies_that_begin_at_once_share_a_new_storage(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    together = [Controllers() for _ in range(3)]
    for place, one in enumerate(together):
        settings = {**SETTINGS, "storage": url, "study_name": f"study-{place}"}
        one.begin(tmp_path / f"study-{place}", SPACE, settings=settings)
    ends = [one.end() for one in together]
    for one in together:
        one.__exit__()

    assert [end["code"] for end in ends] == [0, 0, 0], ends
    assert not any("left behind" in end["printed"] for end in ends)
    for place in range(3):
        assert len(optuna.load_study(study_name=f"study-{place}", storage=url).trials) == 10
