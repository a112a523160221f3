"""Whatever befalls a trial, its folder or the study's: it stays that one's.  All faults: tests/README.md."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import pytest
from controllers import Controllers
from ends import ends_of
from fake_launcher import Outcome

from memsweep.record.past import read_past

Run = Callable[..., Outcome]

TESTS = Path(__file__).resolve().parents[1]
TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
PLAIN = {"x": 0, "y": 0}
SPACE = ["x=range(0,6)", "y=range(0,6)"]


def measure(number: int, values: Mapping[str, Any]) -> dict[str, float]:
    x, y = float(values["x"]), float(values["y"])
    return {"speed": 10 * x - y * y, "size": x * x + y + 1}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Trials.

APP = """
    import ctypes, os, resource, shutil, signal, subprocess, sys, threading, time
    import hydra
    from hydra.core.hydra_config import HydraConfig

    def end(how):
        number, own = float("nan"), HydraConfig.get().runtime.output_dir
        match how:
            case "raises": raise RuntimeError("no")
            case "exits with 0": sys.exit(0)
            case "exits with 3": sys.exit(3)
            case "leaves at once": os._exit(0)
            case "is killed": os.kill(os.getpid(), signal.SIGKILL)
            case "is asked to end": os.kill(os.getpid(), signal.SIGTERM)
            case "faults": ctypes.string_at(0)
            case "aborts": os.abort()
            case "hangs": time.sleep(100)
            case "hangs and hears nothing":
                for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(one, signal.SIG_IGN)
                while True: pass
            case "stops": os.kill(os.getpid(), signal.SIGSTOP)
            case "starves":
                resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20))
                bytearray(1 << 30)
            case "recurses": end(how)
            case "is no number": return {"cost": number}
            case "is infinite": return {"cost": float("inf")}
            case "is nothing": return None
            case "is two": return 1.0, 2.0
            case "has another name": return {"costs": 1.0}
            case "is text": return "1.0"
            case "cannot be sent": return threading.Lock()
            case "closes everything": os.closerange(0, 1024)
            case "removes its folder": shutil.rmtree(own)
            case "tears its outcome":
                with open(os.path.join(own, "outcome.json"), "w") as file: file.write('{"outcome": {"ty')
            case "cannot write":
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
                print("words " * 1000, flush=True)
        return {"cost": 1.0}

    @hydra.main(version_base="1.3", config_path=None, config_name=None)
    def main(config):
        subprocess.Popen(["sleep", config.sleep], start_new_session=True)  # an orphan of every trial
        return end(config.end)

    main()
"""
ENDS = {
    "is fine": "measured",
    "raises": "crashed",
    "exits with 0": "crashed",
    "exits with 3": "crashed",
    "leaves at once": "crashed",
    "is killed": "crashed",
    "is asked to end": "crashed",
    "faults": "crashed",
    "aborts": "crashed",
    "hangs": "timed_out",
    "hangs and hears nothing": "timed_out",
    "stops": "timed_out",
    "starves": "out_of_memory",
    "recurses": "crashed",
    "is no number": "non_finite",
    "is infinite": "non_finite",
    "is nothing": "crashed",
    "is two": "crashed",
    "has another name": "crashed",
    "is text": "crashed",
    "cannot be sent": "crashed",
    "closes everything": "crashed",
    "removes its folder": "measured",
    "tears its outcome": "crashed",
    "cannot write": "crashed",
}


@pytest.mark.slow
def test_every_end_of_a_trial_is_its_own_and_leaves_no_process(tmp_path: Path) -> None:
    assert ends_of(tmp_path, APP, ENDS) == ENDS


def test_a_trial_that_removes_its_folder_keeps_no_study_from_going_on(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 2:
            shutil.rmtree("study/trials/2")
        return measure(number, values)

    run_sweep(SPACE, task, config=PLAIN, n_trials=4, **TWO)
    outcome = run_sweep(SPACE, task, config=PLAIN, n_trials=6, **TWO)

    assert outcome.exit_code == 0, outcome.stderr
    assert [result.outcome.type for result in outcome.results] == ["measured"] * 6
    assert [number for number, _ in outcome.launcher.launched] == [4, 5]


# What lies in the study's folder, while it runs and between two runs.


@pytest.mark.parametrize("name", ["study.json", "results.jsonl", "front.csv", "optimization_results.yaml"])
def test_a_file_that_is_deleted_while_the_study_runs_is_there_at_its_end(run_sweep: Run, name: str) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 3:
            Path("study", name).unlink()
        return measure(number, values)

    outcome = run_sweep(SPACE, task, config=PLAIN, n_trials=6, **TWO)

    assert outcome.exit_code == 0, outcome.stderr
    assert (outcome.folder.path / name).stat().st_size
    assert len(outcome.results) == 6


def test_a_storage_that_is_deleted_while_the_study_runs_is_there_after_the_next(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 3:
            Path("study/study.db").unlink()
        return measure(number, values)

    first = run_sweep(SPACE, task, config=PLAIN, n_trials=6, storage="auto", **TWO)
    n_results = len(first.results)
    outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=8, storage="auto", **TWO)
    url = f"sqlite:///{outcome.folder.storage}"
    stored = optuna.load_study(study_name=outcome.study.name, storage=url)

    assert [first.exit_code, outcome.exit_code] == [0, 0]
    assert n_results == 6
    assert [trial.user_attrs["number"] for trial in stored.trials] == list(range(8))


def test_results_whose_trial_folders_are_gone_are_kept_when_the_study_begins_anew(
    run_sweep: Run, caplog: pytest.LogCaptureFixture
) -> None:
    first = run_sweep(SPACE, measure, config=PLAIN, n_trials=6, **TWO)
    before = first.folder.results.read_bytes()
    shutil.rmtree(first.folder.trials)
    with caplog.at_level(logging.INFO):
        outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=2, **TWO)

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.results) == 2
    assert outcome.folder.path.joinpath("results.jsonl.damaged-1").read_bytes() == before
    assert any("trial 0, which has no folder with an outcome" in message for message in caplog.messages)


def test_trial_folders_that_are_links_are_not_taken_for_none(run_sweep: Run, tmp_path: Path) -> None:
    """They were moved to a larger disk, say: a study that began anew would write over them."""
    first = run_sweep(SPACE, measure, config=PLAIN, n_trials=3, **TWO)
    first.folder.trials.rename(tmp_path / "elsewhere")
    first.folder.trials.symlink_to(tmp_path / "elsewhere")
    before = contents(tmp_path / "elsewhere")
    outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=5, **TWO)

    assert outcome.exit_code == 2
    assert str(tmp_path / "elsewhere") in outcome.stderr
    assert outcome.launcher.launched == []
    assert contents(tmp_path / "elsewhere") == before


def test_two_trials_that_are_to_have_one_folder_are_refused(run_sweep: Run) -> None:
    study = run_sweep(SPACE, measure, config=PLAIN, n_trials=1, **TWO).folder
    study.trial(0).path.rename(study.trial(1).path)  # as where hydra.sweep.subdir does not tell trials apart
    outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=3, **TWO)

    assert outcome.exit_code == 2
    assert "hydra.sweep.subdir must give each trial a folder of its own" in outcome.stderr
    assert len(read_past(study).trials) == 1


def finished(folder: Path) -> list[str]:
    """Return the numbers of the trials that have ended by themselves."""
    files = folder.glob("trials/*/outcome.json")
    return [file.parent.name for file in files if '"interrupted"' not in file.read_text()]


@contextmanager
def mounted(place: Path, *words: str) -> Iterator[None]:
    """Mount something on a folder until the block ends."""
    mount = ["mount", *words, str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only a superuser who may mount fills a disk, or makes one read-only for everybody")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_trial_that_fills_the_disk_ends_the_study_and_runs_again_once_there_is_room(
    run_sweep: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 3:
            with (folder / "filler").open("wb") as file:
                while True:
                    file.write(b"x" * 4096)
        return measure(number, values)

    with mounted(folder, "-t", "tmpfs", "-o", "size=16m", "tmpfs"):
        first = run_sweep(SPACE, task, config=PLAIN, n_trials=6, **TWO)
        (folder / "filler").unlink()
        outcome = run_sweep(SPACE, measure, config=PLAIN, n_trials=6, **TWO)
        ends = [result.outcome.type for result in outcome.results]

    assert first.exit_code == 1
    assert f"{folder}/trials/3 cannot be written: No space left on device" in first.stderr
    assert outcome.exit_code == 0
    assert ends == ["measured"] * 3 + ["interrupted"] + ["measured"] * 3


@pytest.mark.slow
def test_a_folder_that_becomes_read_only_while_the_study_runs(tmp_path: Path) -> None:
    folder, space = tmp_path / "study", ["x=range(0,12)", "y=range(0,12)"]
    settings = {"n_trials": 100, "seed": 1}
    with Controllers() as controllers:
        controllers.begin(folder, space, settings=settings)
        while len(list(folder.glob("trials/*/outcome.json"))) < 3:
            time.sleep(0.01)
        with mounted(folder / "trials", "--bind", str(folder / "trials")):
            command = ["mount", "-o", "remount,bind,ro", str(folder / "trials")]
            while subprocess.run(command, check=False).returncode:  # a file is open for writing
                time.sleep(0.01)
            ended = controllers.end()
        n_finished = len(finished(folder))
        again = controllers.run(folder, space, settings=settings)

    assert ended["code"] == 1, ended["printed"]
    assert "Read-only file system" in ended["printed"]
    assert "Traceback" not in ended["printed"]
    assert 3 <= n_finished < 100
    assert again["code"] == 0, again["printed"]
    assert len(finished(folder)) == 100


# The matrix.


def test_every_test_of_the_matrix_is_there() -> None:
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    table = text.partition("## What may break")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    missing = []
    for row in rows:
        named = re.findall(r"`(\w+)::(\w+)`", row)
        missing += [row] if not named else []
        for module, test in named:
            (file,) = TESTS.rglob(f"{module}.py")
            missing += [] if f"def {test}(" in file.read_text(encoding="utf-8") else [f"{module}::{test}"]

    assert len(rows) >= 20
    assert missing == []
