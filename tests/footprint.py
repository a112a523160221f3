"""What a controller holds and has left on the disk, looked at while its study of instant trials runs."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from memsweep.trial import kernel

APP = """
import json, os
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig

from footprint import controller_of_trial, footprint


@hydra.main(version_base="1.3", config_path=".", config_name="config")
def main(config):
    number = int(HydraConfig.get().job.num)
    if number in config.look_at:
        with open("looked", "a") as file:
            file.write(json.dumps(footprint(Path("study"), number, controller_of_trial())) + "\\n")
    return {"speed": 10 * config.x - config.y**2, "size": config.x**2 + config.y}


if __name__ == "__main__":
    main()
"""
CONFIG = """
defaults: [_self_, {override hydra/sweeper: pareto}, {override hydra/launcher: isolated}]
x: 0
y: 0
look_at: []
hydra:
  sweep: {dir: study, subdir: "trials/${hydra.job.num}"}
  sweeper: {objectives: {speed: maximize, size: minimize}}
"""


def footprint(folder: Path, number: int, controller: int) -> dict[str, Any]:
    """Return what a controller holds while trial `number` is with its launcher.

    Args:
        folder: Of its study.
        number: Of the trial.
        controller: Its process number.

    Returns:
        `number`; `at_seconds` of a clock that all processes share; `cpu_seconds` that the controller and what
        it has started have computed; `anonymous_bytes`, `n_handles` and `n_threads` of the controller;
        `n_children`, and `children_bytes` that those hold in memory; `trial_bytes` of the disk that the
        folders of trials take and `study_bytes` that all else in the study's folder takes; `n_partial` files
        that are half written.
    """
    if controller == os.getpid():
        gc.collect()  # what nobody holds any more is no leak
    at_seconds, cpu_seconds = time.monotonic(), kernel.cpu_seconds(controller)
    children = kernel.children(controller)
    on_disk = {path: path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()}
    in_trials = sum(size for path, size in on_disk.items() if path.is_relative_to(folder / "trials"))
    return {
        "number": number,
        "at_seconds": at_seconds,
        "cpu_seconds": cpu_seconds,
        "anonymous_bytes": kernel.anonymous_bytes(controller),
        "n_handles": len(os.listdir(f"/proc/{controller}/fd")),  # noqa: PTH208, names are enough
        "n_threads": len(os.listdir(f"/proc/{controller}/task")),  # noqa: PTH208, names are enough
        "n_children": len(children),
        "children_bytes": sum(kernel.anonymous_bytes(child) or 0 for child in children),
        "trial_bytes": in_trials,
        "study_bytes": sum(on_disk.values()) - in_trials,
        "n_partial": sum(path.suffix == ".tmp" for path in on_disk),
    }


def controller_of_trial() -> int:
    """Return the controller of the trial that this process is: what has started its template."""
    stat = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])


def isolated_study(
    folder: Path, n_trials: int, look_at: Collection[int], words: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], str]:
    """Run a study of instant trials, each in a process of its own.

    Args:
        folder: An empty one.
        n_trials: How many.
        look_at: Numbers of the trials that look at their controller.
        words: Further overrides.

    Returns:
        What was seen, and what was printed.

    Raises:
        AssertionError: If the study did not end well.
    """
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    here = Path(__file__).resolve().parent
    paths = [str(here), str(here.parent / "src"), str(here.parent / "sweeper"), *sys.path]
    done = subprocess.run(
        [
            *(sys.executable, "app.py", "-m", "x=range(0,60)", "y=range(0,60)"),
            f"look_at=[{','.join(map(str, look_at))}]",
            f"hydra.sweeper.n_trials={n_trials}",
            *words,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (folder / "looked").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], done.stdout


def a_trial(first: dict[str, Any], last: dict[str, Any], what: str) -> float:
    """Return by how much something has grown from one look to a later one, for each trial between them."""
    return float(last[what] - first[what]) / (last["number"] - first["number"])
