"""With Hydra itself: its own conformance tests, its own launcher, real processes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.test_utils.launcher_common_tests import BatchedSweeperTestSuite
from hydra.test_utils.test_utils import TSweepRunner, chdir_hydra_root  # noqa: F401, fixtures use them

from memsweep.machine import n_cores

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


def test_the_entry_points_are_the_plugins_classes() -> None:
    """hydra-core==1.4.0rc3 core/plugins.py loads each, and warns of what is no plugin's class."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    points = project["project"]["entry-points"]["hydra.plugins"]
    found = {name: EntryPoint(name, text, "hydra.plugins").load() for name, text in points.items()}

    assert set(found) == {"pareto", "isolated"}
    assert issubclass(found["pareto"], Sweeper)
    assert issubclass(found["isolated"], Launcher)


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


SLOTS = """
import os, subprocess, time
import hydra

@hydra.main(version_base="1.3", config_path=".", config_name="config")
def main(config):
    began = time.time()
    subprocess.Popen(["sleep", config.mark], start_new_session=True)  # an orphan of every trial
    time.sleep(config.long if config.x == 1 else config.short)
    return {"speed": config.x, "size": config.x, "began": began, "ended": time.time()}

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def slots_app(tmp_path: Path) -> Path:
    """An app whose first trial takes long and the others a moment, and its command but for the last words."""
    app = make_app(tmp_path, "{}", TWO)
    (app / "app.py").write_text(SLOTS)
    mark = f"100.{os.getpid()}"
    (app / "config.yaml").write_text(
        (app / "config.yaml").read_text() + f"mark: '{mark}'\nlong: 4\nshort: 0.3\n"
    )
    return app


def orphans() -> list[str]:
    """Return what trials have left behind."""
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in commands.splitlines() if line == f"sleep 100.{os.getpid()}"]


two_cores = pytest.mark.skipif(n_cores() < 2, reason="needs a core for each of two slots")


@two_cores
@pytest.mark.slow
def test_two_slots_do_not_wait_for_each_other(slots_app: Path) -> None:
    done = run(slots_app, "hydra/launcher=isolated", "hydra.launcher.slots=2", "x=range(1,6)")
    lines = map(json.loads, (slots_app / "out" / "results.jsonl").read_text().splitlines())
    measures = {line["number"]: line["measures"] for line in lines}

    assert done.returncode == 0, done.stderr
    assert sorted(measures) == [0, 1, 2, 3, 4]
    assert measures[1]["ended"] < measures[0]["ended"]
    assert measures[2]["began"] < measures[3]["began"] < measures[0]["ended"]
    assert orphans() == []


@two_cores
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_every_slot_and_leaves_no_process(slots_app: Path, number: signal.Signals) -> None:
    command = [sys.executable, "app.py", "-m", "hydra.sweep.dir=out", "hydra.sweeper.storage=null"]
    command += ["hydra/launcher=isolated", "hydra.launcher.slots=2", "x=range(1,9)", "long=60", "short=60"]
    process = subprocess.Popen(command, cwd=slots_app, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(orphans()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=60)
    lines = [json.loads(line) for line in (slots_app / "out" / "results.jsonl").read_text().splitlines()]

    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert [(line["number"], line["outcome"]["type"]) for line in lines] == [
        (0, "interrupted"),
        (1, "interrupted"),
    ]
    assert orphans() == []


@pytest.mark.slow
def test_too_many_slots_are_exit_code_2_and_no_traceback(slots_app: Path) -> None:
    done = run(slots_app, "hydra/launcher=isolated", "hydra.launcher.slots=4096", "x=range(1,6)")

    assert done.returncode == 2
    assert "hydra.launcher.slots=4096 needs a core for each trial" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (slots_app / "out" / "results.jsonl").exists()


@pytest.mark.slow
def test_a_study_that_nobody_listens_to_any_more_ends_well(app: Path) -> None:
    words = ["-m", "hydra.sweep.dir=out", "x=range(1,4)"]
    process = subprocess.Popen(
        [sys.executable, "app.py", *words], cwd=app, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()

    assert process.wait(60) == 0
    assert said == ""
    assert len((app / "out" / "results.jsonl").read_text().splitlines()) == 3


@pytest.mark.slow
def test_too_many_slots_are_refused_in_a_dry_run_too(slots_app: Path) -> None:
    words = ("x=1,2", "hydra/launcher=isolated", "hydra.launcher.slots=4096")
    dry = run(slots_app, *words, "hydra.sweeper.dry_run=true")

    assert dry.returncode == 2
    assert dry.stderr == run(slots_app, *words).stderr
    assert "needs a core for each trial" in dry.stderr
    assert not (slots_app / "out").exists()


@pytest.mark.slow
def test_the_studys_folder_is_the_same_for_every_trial(app: Path) -> None:
    run(app, "hydra.sweep.dir=out-${x}-${now:%f}", "x=1,2,3")
    folders = list(app.glob("out-*"))

    assert len(folders) == 1
    assert {path.parent.name for path in folders[0].glob("*/trial.json")} == {"0", "1", "2"}


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
