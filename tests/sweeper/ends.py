"""A study whose trials end in every way there is, each by a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path


def ends_of(folder: Path, app: str, asked: Iterable[str]) -> dict[str, str]:
    """Run a study of the app in which each trial is to end in one way; return way to outcome.

    Args:
        folder: Where app and study lie.
        app: Its source; it takes `end`, and leaves orphans that `sleep` for as long as `sleep` says.
        asked: The ways.
    """
    (folder / "app.py").write_text(textwrap.dedent(app))
    ways = list(asked)
    seconds = f"100.{os.getpid()}"  # marks the orphans
    words = [
        *["-m", "hydra/sweeper=pareto", "hydra/launcher=isolated", "hydra.launcher.timeout_seconds=1.5"],
        *[f"+end={','.join(map(repr, ways))}", f"+sleep='{seconds}'", f"hydra.sweeper.n_trials={len(ways)}"],
        *["+hydra.sweeper.objectives={cost: minimize}", "hydra.sweep.dir=study"],
        "hydra.sweep.subdir=trials/${hydra.job.num}",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "app.py", *words], cwd=folder, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"sleep {seconds}" not in commands.splitlines()
    lines = map(json.loads, (folder / "study" / "results.jsonl").read_text().splitlines())
    return {line["parameters"]["end"].strip("'"): line["outcome"]["type"] for line in lines}
