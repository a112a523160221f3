"""Every file of a trial folder and of a study folder, named once; JSON written atomically.

A trial folder is an interface that people read:

    outputs/<study>/trials/<number>/
        config.yaml      the composed configuration, resolved
        overrides.txt    what was typed for this trial, one override a line
        effective.json   what was in force once the trainer was built
        outcome.json     how it ended: the commit point of the trial
        stdout.log, stderr.log
        .hydra/          Hydra's own record
        repeats/<k>/     a trial folder for each further run of the same
        tries/<k>/       what an earlier try left, of a trial that was tried again
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace `path` by `text` in one step: a reader sees the old or the new, never a part.

    Args:
        path: The file; its folder is made when missing.
        text: What it is to hold.
        durable: Wait until the disk has it, so that it survives a loss of power.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    partial.replace(path)
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_json(path: Path, data: Mapping[str, Any], *, durable: bool = False) -> None:
    """Replace `path` by `data` as indented JSON with sorted keys.

    Raises:
        ValueError: If a number in `data` is NaN or infinite: JSON has neither.
    """
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n", durable=durable)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that `path` holds.

    Raises:
        ValueError: If it holds no JSON object; the message names the file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object, got {type(data).__name__}")  # noqa: TRY004
    return data


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """The files of one trial.

    Attributes:
        path: The folder itself.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The composed configuration, resolved, as YAML."""
        return self.path / "config.yaml"

    @property
    def overrides(self) -> Path:
        """What was typed for this trial, one override a line."""
        return self.path / "overrides.txt"

    @property
    def effective(self) -> Path:
        """What was in force once the trainer was built."""
        return self.path / "effective.json"

    @property
    def outcome(self) -> Path:
        """How the trial ended: once it is there, the trial has happened."""
        return self.path / "outcome.json"

    @property
    def stdout(self) -> Path:
        """What the trial wrote to its standard output."""
        return self.path / "stdout.log"

    @property
    def stderr(self) -> Path:
        """What the trial wrote to its standard error."""
        return self.path / "stderr.log"

    def last_lines(self, n_lines: int = 12) -> tuple[str, ...]:
        """Return the end of stderr without empty lines, or of stdout when stderr is empty."""
        for log in (self.stderr, self.stdout):
            if log.exists():
                with log.open("rb") as file:
                    file.seek(max(0, log.stat().st_size - 16_384))
                    text = file.read().decode("utf-8", "replace")
                lines = [line.rstrip() for line in text.splitlines() if line.strip()]
                if lines:
                    return tuple(lines[-n_lines:])
        return ()


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """The files of one study.

    Attributes:
        path: The folder itself: `outputs/<study>`.
    """

    path: Path

    @property
    def study(self) -> Path:
        """What the study set out to do: space, objectives, constraints, reference point."""
        return self.path / "study.json"

    @property
    def storage(self) -> Path:
        """Optuna's SQLite file: a mirror of the trial folders, for its dashboard."""
        return self.path / "study.db"

    @property
    def results(self) -> Path:
        """One JSON object a finished trial."""
        return self.path / "results.jsonl"

    @property
    def front(self) -> Path:
        """The Pareto front as CSV."""
        return self.path / "front.csv"

    @property
    def optimization_results(self) -> Path:
        """The official Optuna plugin's result file, with more in it."""
        return self.path / "optimization_results.yaml"

    @property
    def report(self) -> Path:
        """The report: one page that needs no network."""
        return self.path / "report.html"

    @property
    def wandb(self) -> Path:
        """Weights & Biases' offline runs."""
        return self.path / "wandb"

    @property
    def trials(self) -> Path:
        """The folder of the trial folders."""
        return self.path / "trials"

    def trial(self, number: int) -> TrialFolder:
        """Return the folder of trial `number`."""
        return TrialFolder(self.trials / str(number))
