"""A controller that is killed at any instant loses nothing: the same command finishes the study.

With one slot what it ends with is what it would have been without the kill, trial for trial.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from controllers import Controllers

from memsweep.record.folder import StudyFolder
from memsweep.record.past import read_past
from memsweep.record.trial import read_results

ARGUMENTS = ("x=range(0,6)", "y=range(0,6)")
N_TRIALS = 12

Whole = tuple[dict[str, Any], list[dict[str, Any]]]
"""How a controller ended, and what its study found."""

VARIANTS: dict[str, dict[str, Any]] = {
    "structured": {"n_trials": N_TRIALS, "seed": 3},
    "stored": {"n_trials": N_TRIALS, "storage": "auto"},
    "repeated": {"n_trials": N_TRIALS, "repeats": 2, "front_repeats": 1},
    "tpe": {"n_trials": N_TRIALS, "sampler": "tpe"},
    "nsgaii": {"n_trials": N_TRIALS, "sampler": "nsgaii"},
}
N_KILLS = {"structured": 60, "stored": 12, "repeated": 24, "tpe": 8, "nsgaii": 8}
TOGETHER = 6
"""Kills of one test: so few that none comes near its limit, and that processes can share them."""

PATIENT = pytest.mark.timeout(600)
"""Half a minute on two cores that are busy with other tests; the limit is for what hangs."""


@pytest.fixture(scope="module")
def controllers() -> Iterator[Controllers]:
    with Controllers() as found:
        yield found


@pytest.fixture(scope="module")
def whole(controllers: Controllers, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Whole]:
    """A function that returns how a variant's study goes without a kill, and what it finds."""

    @cache
    def run(name: str) -> Whole:
        folder = tmp_path_factory.mktemp(name) / "study"
        done = controllers.run(folder, ARGUMENTS, settings=VARIANTS[name])
        assert done["code"] == 0, done["printed"]
        return done, facts(folder)

    return run


def facts(folder: Path) -> list[dict[str, Any]]:
    """Return what results.jsonl says, without what the clock and interrupted trials bring about."""
    results = read_results(StudyFolder(folder).results)
    ended = [result for result in results if result.outcome.type != "interrupted"]
    places = {result.number: place for place, result in enumerate(ended)}
    return [
        {
            **{key: value for key, value in result.to_mapping().items() if key not in ("number", "seconds")},
            "reused_from": None if result.reused_from is None else places[result.reused_from],
        }
        for result in ended
    ]


def finished(folder: Path) -> dict[Path, bytes]:
    """Return every file of the folders of trials that have come to an end of their own."""
    return {
        path: path.read_bytes()
        for trial in read_past(StudyFolder(folder)).trials
        if trial.record is not None and trial.record.outcome.type != "interrupted"
        for path in trial.folder.path.rglob("*")
        if path.is_file() and not path.name.endswith(".tmp")
    }


def kill_and_finish(
    controllers: Controllers,
    folder: Path,
    settings: dict[str, Any],
    expected: list[dict[str, Any]],
    **kill: Any,
) -> None:
    """Kill a controller, run the same command again, and compare with an undisturbed study."""
    killed = controllers.run(folder, ARGUMENTS, settings=settings, **kill)
    before = finished(folder) if folder.is_dir() else {}
    done = controllers.run(folder, ARGUMENTS, settings=settings)
    said = f"{kill}: {killed['printed'][-2000:]}\n--- again:\n{done['printed'][-4000:]}"

    assert done["code"] == 0, said
    assert facts(folder) == expected, said
    assert finished(folder).items() >= before.items(), said
    assert json.loads((folder / "study.json").read_text())["ended"] == f"{N_TRIALS} trials", said
    assert not list(folder.glob(".*.tmp")), said


def kills(name: str, done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return when controllers of a variant are killed: three of four at an event, the others at a moment."""
    rng, n_kills = random.Random(name), N_KILLS[name]
    n_moments = n_kills // 4
    events = rng.sample(range(done["n_events"]), n_kills - n_moments)
    moments = [rng.uniform(0.0, done["seconds"]) for _ in range(n_moments)]
    found = [{"kill_at_event": event} for event in events]
    return [*found, *({"kill_after_seconds": seconds} for seconds in moments)]


@PATIENT
def test_a_few_kills_lose_nothing(
    controllers: Controllers, whole: Callable[[str], Whole], tmp_path: Path
) -> None:
    done, expected = whole("structured")

    for place in (0.02, 0.4, 0.75, 0.97):
        event = int(done["n_events"] * place)
        folder = tmp_path / str(event)
        kill_and_finish(controllers, folder, VARIANTS["structured"], expected, kill_at_event=event)


@pytest.mark.slow
@PATIENT
@pytest.mark.parametrize(
    ("name", "first"),
    [(name, first) for name, n_kills in N_KILLS.items() for first in range(0, n_kills, TOGETHER)],
)
def test_a_kill_at_any_instant_loses_nothing(
    controllers: Controllers, whole: Callable[[str], Whole], tmp_path: Path, name: str, first: int
) -> None:
    done, expected = whole(name)

    for place, kill in enumerate(kills(name, done)[first : first + TOGETHER]):
        kill_and_finish(controllers, tmp_path / str(place), VARIANTS[name], expected, **kill)


@pytest.mark.slow
@PATIENT
def test_kill_upon_kill_ends_at_the_same_total(
    controllers: Controllers, whole: Callable[[str], Whole], tmp_path: Path
) -> None:
    done, _ = whole("structured")
    settings, rng, folder = VARIANTS["structured"], random.Random(0), tmp_path / "killed"
    for _ in range(12):
        event = rng.randrange(done["n_events"] // 3)
        controllers.run(folder, ARGUMENTS, settings=settings, kill_at_event=event)
    last = controllers.run(folder, ARGUMENTS, settings=settings)
    found = facts(folder)

    assert last["code"] == 0, last["printed"]
    assert len(found) == N_TRIALS
    assert len({tuple(one["overrides"]) for one in found}) == N_TRIALS


def test_there_are_at_least_a_hundred_kills() -> None:
    assert sum(N_KILLS.values()) >= 100


APP = """
import subprocess, time
import hydra

@hydra.main(version_base="1.3", config_path=".", config_name="config")
def main(config):
    subprocess.Popen(["sleep", config.mark], start_new_session=True)  # an orphan of every trial
    time.sleep(0.2)
    return {"speed": config.x, "size": config.x * config.x}

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_controller_killed_with_its_trials_in_processes_leaves_none_and_goes_on(tmp_path: Path) -> None:
    mark = f"200.{os.getpid()}"
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "config.yaml").write_text(
        "defaults: [_self_, {override hydra/sweeper: pareto}, {override hydra/launcher: isolated}]\n"
        f"x: 0\nmark: '{mark}'\n"
        "hydra: {sweeper: {objectives: {speed: maximize, size: minimize}, n_trials: 9}, sweep: {dir: out}}\n"
    )
    command = [sys.executable, "app.py", "-m", "x=range(1,10)"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for n_wanted in (2, 5):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 100
        while len(list(tmp_path.glob("out/*/outcome.json"))) < n_wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        process.wait()
    time.sleep(0.5)
    left = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = facts(tmp_path / "out")

    assert f"sleep {mark}" not in left
    assert done.returncode == 0, done.stderr
    assert len(found) == 9
    assert {one["outcome"]["type"] for one in found} == {"measured"}
