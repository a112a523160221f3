"""Every file of a trial folder and of a study folder, named once; JSON written atomically.

A trial folder is an interface that people read:

    outputs/<study>/trials/<number>/
        trial.json       what it was asked to do, written before it begins
        config.yaml      the composed configuration, resolved
        overrides.txt    what was typed for this trial, one override a line
        effective.json   what was in force once the trainer was built
        log.jsonl        what the trainer logged of its training, a line each time
        outcome.json     how it ended: the commit point of the trial
        accelerate.yaml, deepspeed.json   of several processes: what `accelerate launch` would be given
        stdout.log, stderr.log
        ranks/<k>/       the same of each further process, from 1
        .hydra/          Hydra's own record
        repeats/<k>/     a trial folder for each further run of the same
        tries/<k>/       what an earlier try left, of a trial that was tried again
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memsweep.errors import StudyUnwritable
from memsweep.visible import visible_json


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace `path` by `text`, as `write_bytes` does; what no UTF-8 has is written out, as JSON reads it."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), durable=durable)


def write_bytes(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace `path` by `data` in one step: a reader sees the old or the new, never a part.

    Args:
        path: The file; its folder is made when missing.
        data: What it is to hold.
        durable: Wait until the disk has it, so that it survives a loss of power.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.unlink(missing_ok=True)  # of a killed process; a link is never followed
        with partial.open("xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        _put(partial, path)
    except OSError:  # a full disk, say: half a file would only make it fuller
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _put(partial: Path, path: Path) -> None:
    """Give a file its name; a folder that somebody has made of that name is set aside."""
    try:
        partial.replace(path)
    except IsADirectoryError:
        set_damaged_aside(path)
        partial.replace(path)


def write_json(path: Path, data: Mapping[str, Any], *, durable: bool = False) -> None:
    """Replace `path` by `data` as indented JSON with sorted keys.

    Raises:
        ValueError: If a number in `data` is NaN or infinite: JSON has neither.
    """
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n", durable=durable)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that `path` holds, with its texts as they can be shown.

    Raises:
        ValueError: If it holds no JSON object; the message names the file.
    """
    with opened(path) as file:
        content = file.read()
    try:
        data = visible_json(content.decode("utf-8"))
    except ValueError as error:  # no UTF-8 is one too
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object, got {type(data).__name__}")  # noqa: TRY004
    return data


def opened(path: Path) -> BinaryIO:
    """Open a file that a trial may have made: a pipe would be waited for, and a device has no end.

    Raises:
        ValueError: If it is no file; the message names it.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{path} is no file")
    return os.fdopen(number, "rb")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say in words that a study cannot go on where its folder cannot be written any more.

    Raises:
        StudyUnwritable: If something within the block could not be written.
    """
    try:
        yield
    except OSError as error:
        place = error.filename or folder
        raise StudyUnwritable(
            f"{place} cannot be written: {error.strerror or error}.  The study ends here; no trial that has "
            "finished is lost, and the same command continues it once there is room"
        ) from error


def set_damaged_aside(path: Path) -> Path:
    """Give a file that cannot be used a name that nothing reads, and return that: `name.damaged-<n>`."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.replace(aside)
    return aside


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """The files of one trial.

    Attributes:
        path: The folder itself.
    """

    path: Path

    @property
    def asked(self) -> Path:
        """What the trial was asked to do, written before it begins."""
        return self.path / "trial.json"

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
    def log(self) -> Path:
        """What the trainer logged of its training: one JSON object a line, `step` and numbers."""
        return self.path / "log.jsonl"

    @property
    def stdout(self) -> Path:
        """What the trial wrote to its standard output."""
        return self.path / "stdout.log"

    @property
    def stderr(self) -> Path:
        """What the trial wrote to its standard error."""
        return self.path / "stderr.log"

    @property
    def accelerate(self) -> Path:
        """How accelerate is configured for a trial of several processes, as it reads that itself."""
        return self.path / "accelerate.yaml"

    @property
    def deepspeed(self) -> Path:
        """How DeepSpeed is configured, where it is used."""
        return self.path / "deepspeed.json"

    def rank(self, number: int) -> TrialFolder:
        """Return the folder of one of the processes of a trial; the first one has the trial's own."""
        return self if number == 0 else TrialFolder(self.path / "ranks" / str(number))

    def repeat(self, number: int) -> TrialFolder:
        """Return the folder of the how-manieth further run of the same, from 1."""
        return TrialFolder(self.path / "repeats" / str(number))

    def last_lines(self, n_lines: int = 12) -> tuple[str, ...]:
        """Return the end of stderr without empty lines, or of stdout when stderr is empty."""
        for log in (self.stderr, self.stdout):
            with contextlib.suppress(OSError, ValueError), opened(log) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 16_384))
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
    def lock(self) -> Path:
        """Held by the one process that may write here; empty, or who had it last."""
        return self.path / ".lock"

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
    def report_markdown(self) -> Path:
        """The report as Markdown."""
        return self.path / "report.md"

    @property
    def pictures(self) -> Path:
        """The folder of the report's pictures, SVG and PNG."""
        return self.path / "pictures"

    @property
    def lengths(self) -> Path:
        """How long the examples of its data are in tokens, if `memsweep lengths --study` has counted them."""
        return self.path / "lengths.json"

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
