"""The example app, run as a person would."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "sweeper" / "examples"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A copy of the example, whose sweeps may write beside it."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def run(app: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "fit.py", *words]
    return subprocess.run(command, cwd=app, capture_output=True, text=True, timeout=200, check=False)


def trials(app: Path) -> list[dict[str, Any]]:
    (results,) = app.rglob("results.jsonl")
    return [json.loads(line) for line in results.read_text().splitlines()]


@pytest.mark.slow
def test_a_front_of_two_objectives_is_found(app: Path) -> None:
    done = run(app, "-m", "hparams_search=front")
    found = trials(app)

    assert done.returncode == 0, done.stderr
    assert len(found) == 24
    assert "Pareto front" in done.stdout
    for trial in found:
        typed = dict(text.split("=", 1) for text in trial["overrides"])
        assert ("solver.rate" in typed) == (typed["solver"] == "gradient")
        assert ("solver.nesterov" in typed) == (typed.get("solver.momentum", "0.0") != "0.0")
        assert not (
            typed["features"] == "polynomial"
            and int(typed["features.n"]) >= 16
            and typed["precision"] == "float32"
        )
    assert {trial["outcome"]["type"] for trial in found} <= {"measured", "non_finite"}


@pytest.mark.slow
def test_a_file_for_the_official_plugin_runs_unchanged(app: Path) -> None:
    done = run(app, "-m", "hparams_search=optuna", "hydra/sweeper=pareto")
    (written,) = app.rglob("optimization_results.yaml")

    assert done.returncode == 0, done.stderr
    assert len(trials(app)) == 12
    assert "best_params" in written.read_text()


@pytest.mark.slow
def test_the_command_that_a_study_ends_with_repeats_the_best_trial(app: Path) -> None:
    done = run(app, "-m", "hparams_search=optuna", "hydra/sweeper=pareto")
    (command,) = re.findall(r"^\s*python (fit\.py .*)$", done.stdout, flags=re.MULTILINE)
    again = run(app, *shlex.split(command)[1:])

    assert again.returncode == 0, again.stderr
    assert len(trials(app)) == 12  # it was one trial, and no second study


@pytest.mark.slow
def test_every_command_of_its_readme_works(app: Path) -> None:
    commands = re.findall(
        r"^python fit\.py (.*?)(?:  +#.*)?$", (app / "README.md").read_text(), flags=re.MULTILINE
    )
    codes = {}
    for number, words in enumerate(commands):
        typed = shlex.split(words)
        place = f"hydra.sweep.dir=out/{number}" if "-m" in typed else f"hydra.run.dir=out/{number}"
        few = ["hydra.sweeper.n_trials=4"] if "-m" in typed else []
        codes[words] = run(app, *typed, place, *few).returncode

    assert len(codes) >= 6
    assert set(codes.values()) == {0}, codes
