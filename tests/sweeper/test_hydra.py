"""With Hydra itself: its own conformance tests, its own launcher, real processes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.test_utils.launcher_common_tests import BatchedSweeperTestSuite
from hydra.test_utils.test_utils import TSweepRunner, chdir_hydra_root  # noqa: F401, fixtures use them

APP = """
import sys, time
import hydra

@hydra.main(version_base="1.3", config_path=".", config_name="config")
def main(config):
    if config.x == config.crash:
        raise ValueError("no such luck")
    if config.wait:
        print("waiting", flush=True)
        time.sleep(config.wait)
    return {returned}

if __name__ == "__main__":
    main()
"""

CONFIG = """
defaults:
  - _self_
  - db: mysql
  - override hydra/sweeper: pareto
x: 1
y: 0.5
crash: null
wait: 0
hydra:
  sweeper:
    sampler:
      seed: 1
{sweeper}
"""

TWO = """
    objectives: {speed: maximize, size: minimize}
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An app that has nothing to do with training: two objectives, one config group."""
    return make_app(tmp_path, '{"speed": config.x * 2.0, "size": config.x ** 2}', TWO)


def make_app(folder: Path, returned: str, sweeper: str) -> Path:
    (folder / "app.py").write_text(APP.replace("{returned}", returned))
    (folder / "config.yaml").write_text(CONFIG.replace("{sweeper}", sweeper))
    (folder / "db").mkdir()
    for name in ("mysql", "postgres"):
        (folder / "db" / f"{name}.yaml").write_text(f"name: {name}\n")
    return folder


def run(app: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "app.py",
        "-m",
        "hydra.sweep.dir=out",
        "hydra.sweeper.storage=null",
        *arguments,
    ]
    return subprocess.run(command, cwd=app, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "launcher_name, overrides",
    [
        (
            "basic",
            [
                "hydra/sweeper=pareto",
                "hydra.sweeper.sampler=grid",
                "hydra.sweeper.n_jobs=2",
                "hydra.sweeper.storage=null",
            ],
        )
    ],
)
@pytest.mark.filterwarnings("ignore:.*Future Hydra versions will no longer change working directory")
class TestParetoSweeperIsABatchedSweeper(BatchedSweeperTestSuite):
    """Hydra's own tests of a sweeper."""


def test_hydra_finds_the_sweeper_once() -> None:
    found = [plugin.__name__ for plugin in Plugins.instance().discover(Sweeper)]

    assert found.count("ParetoSweeper") == 1


def test_any_app_is_swept_with_hydras_own_launcher(app: Path) -> None:
    done = run(app, "x=range(1,4)", "db=glob(*)", "hydra.sweeper.n_trials=4")
    solutions = yaml.safe_load((app / "out" / "optimization_results.yaml").read_text())["solutions"]

    assert done.returncode == 0, done.stderr
    assert len((app / "out" / "results.jsonl").read_text().splitlines()) == 4
    assert all((app / "out" / str(number) / ".hydra").is_dir() for number in range(4))
    assert Path(solutions[0]["output_dir"]) == (app / "out" / str(solutions[0]["job_num"])).resolve()
    assert "trial 0 x=1 db=mysql: speed 2, size 1, on the front" in done.stdout


OFFICIAL = """
    storage: null
    study_name: null
    n_jobs: 1
    direction: maximize
    n_trials: 8
    max_failure_rate: 0.0
    custom_search_space: null
    params:
      x: choice(1,2,3)
      y: interval(0.1,0.9)
      db: choice(mysql,postgres)
"""


@pytest.mark.slow
def test_what_a_file_for_the_official_plugin_says_keeps_its_meaning(tmp_path: Path) -> None:
    app = make_app(tmp_path, "-(config.y - 0.3) ** 2", OFFICIAL)
    text = (app / "config.yaml").read_text()
    target = "_target_: optuna.samplers.TPESampler\n      seed: 1"
    (app / "config.yaml").write_text(text.replace("seed: 1", target))
    done = run(app)
    results = yaml.safe_load((app / "out" / "optimization_results.yaml").read_text())

    assert done.returncode == 0, done.stderr
    assert set(results["best_params"]) == {"x", "y", "db"}
    assert isinstance(results["best_params"]["y"], float)
    assert results["best_value"] <= 0


@pytest.mark.slow
def test_a_crash_does_not_end_the_sweep(app: Path) -> None:
    done = run(app, "x=range(1,4)", "crash=2")
    lines = [json.loads(line) for line in (app / "out" / "results.jsonl").read_text().splitlines()]

    assert done.returncode == 0, done.stderr
    assert sorted(line["outcome"]["type"] for line in lines) == ["crashed", "measured", "measured"]


@pytest.mark.slow
def test_nothing_feasible_is_exit_code_1(app: Path) -> None:
    done = run(app, "x=1,2", "+hydra.sweeper.constraints.small={measure:size,at_most:0}")

    assert done.returncode == 1
    assert "no trial meets small; the nearest misses it by 1" in done.stderr


@pytest.mark.parametrize(
    "argument, message",
    [
        ("hydra.sweeper.study_name=../up", "study_name must be"),
        pytest.param("z=1,2", "z is not a setting", marks=pytest.mark.slow),
        pytest.param("db=mysql,orcale", "db has no option 'orcale'; it has mysql", marks=pytest.mark.slow),
    ],
)
def test_a_bad_request_is_exit_code_2_and_no_traceback(app: Path, argument: str, message: str) -> None:
    done = run(app, argument)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert not (app / "out" / "results.jsonl").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_is_exit_code_130_with_results(app: Path, number: signal.Signals) -> None:
    command = [sys.executable, "app.py", "-m", "hydra.sweep.dir=out", "hydra.sweeper.storage=null"]
    process = subprocess.Popen(
        [*command, "x=range(1,9)", "wait=0.5"],
        cwd=app,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    results = app / "out" / "results.jsonl"
    deadline = time.monotonic() + 60
    while not (results.exists() and results.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # the second trial waits by now
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=60)
    lines = [json.loads(line) for line in results.read_text().splitlines()]

    assert process.returncode == 130, stderr
    assert lines[0]["outcome"]["type"] == "measured"
    assert lines[-1]["outcome"]["type"] == "interrupted"
    assert "Traceback" not in stderr
    assert (app / "out" / "report.html").exists()


@pytest.mark.slow
def test_the_studys_folder_is_the_same_for_every_trial(app: Path) -> None:
    run(app, "hydra.sweep.dir=out-${x}-${now:%f}", "x=1,2,3")
    folders = list(app.glob("out-*"))

    assert len(folders) == 1
    assert {path.name for path in folders[0].iterdir() if path.is_dir()} == {"0", "1", "2"}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "isolated"])
def test_a_repeat_lies_in_its_trials_folder_whoever_launches_it(app: Path, launcher: str) -> None:
    process = run(app, f"hydra/launcher={launcher}", "x=1,2", "hydra.sweeper.front_repeats=2")
    results = [json.loads(line) for line in (app / "out" / "results.jsonl").read_text().splitlines()]

    assert process.returncode == 0, process.stderr
    assert [len(result["repeats"]) for result in results] == [2, 2]
    for number, result in enumerate(results):
        for name in ("1", "2"):
            folder = app / "out" / str(number) / "repeats" / name
            said = yaml.safe_load((folder / ".hydra" / "hydra.yaml").read_text())["hydra"]
            assert said["job"]["num"] == number
            assert said["overrides"]["task"] == result["overrides"]
            outcome = json.loads((folder / "outcome.json").read_text())["outcome"]
            assert outcome["measures"] == result["measures"]
