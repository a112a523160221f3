"""A study in Weights & Biases, at no risk to the study: this is the study's side.

All of W&B lives in a process of its own (`memsweep.tracking.process`), which is told of each finished trial
through a pipe.  So importing it delays no trial, nothing of it can hold the study up or change how it ends,
its variables reach no trial's process, and a study that is killed still leaves finished runs: the process
sees the pipe close, and closes them.  Whatever goes wrong is one warning.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import memsweep
from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.trial import TrialResult

log = logging.getLogger(__name__)

MODES = ("offline", "online", "disabled")

LIMIT_SECONDS = 30.0
"""How long W&B may go without a sign of life, while something waits, before it is given up."""

LIMITS_AT_END = 4
"""So many times that long W&B may take for everything once the study has ended."""

KEPT_VARIABLES = ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_CONFIG_DIR")
"""W&B's variables that matter online; no others reach its process: settings are the study's own."""

WORKING_FOLDER = Path("/proc/self/cwd")

_NO_NAME = re.compile(r"[/\\#?%:]")  # Source: wandb==0.31.0 sdk/wandb_settings.py validate_project


class StudyLogger:
    """Tells W&B of a study's trials.  No method raises, and none waits for W&B but `finish`.

    Attributes:
        failure: What went wrong, once something has; the one warning has then been given.
    """

    def __init__(
        self,
        study_folder: StudyFolder,
        tracking: Mapping[str, Any],
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        """Start W&B's process without waiting for it.

        Args:
            study_folder: It must hold study.json; everything that W&B writes stays in it.
            tracking: `mode` (offline, online or disabled), `project` and `entity` (None: the account's own).
            limit_seconds: See `LIMIT_SECONDS`.

        Raises:
            ConfigError: If there is no such mode, or W&B takes no such project or entity.
        """
        self.mode, project, entity = _checked(tracking)
        self.failure: str | None = None
        self._lock = threading.Lock()
        self._folder = study_folder
        self._limit_seconds = limit_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._n_sent = self._n_answered = 0
        self._last_progress = time.monotonic()
        self._url: str | None = None
        self._has_warned = False
        if self.mode == "disabled":
            return
        try:
            self._process = self._start()
        except OSError as error:
            self._fail(f"its process did not start: {error}")
            return
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, args=(self._process,), daemon=True).start()
        self._send(
            {
                "kind": "study",
                "folder": str(study_folder.path.resolve()),
                "mode": self.mode,
                "project": project,
                "entity": entity,
                "limit_seconds": limit_seconds,
            }
        )

    @property
    def location(self) -> Path | None:
        """The folder of W&B's runs; None when nothing is logged."""
        return None if self.mode == "disabled" or self.failure else self._folder.wandb

    @property
    def place(self) -> str | None:
        """Where to look for the runs, or what uploads them; None when nothing is logged."""
        return None if self.location is None else self._url or self.command

    @property
    def command(self) -> str:
        """What uploads the runs that are on disk alone."""
        return sync_command(self._folder)

    def earlier(self, results: Sequence[TrialResult]) -> None:
        """Tell of the trials of a study that goes on: they are logged already, and count for its figures."""
        if results:
            self._send({"kind": "earlier", "results": [result.to_mapping() for result in results]})

    def trial(self, result: TrialResult) -> None:
        """Log one finished trial as a run."""
        self._send({"kind": "trial", "result": result.to_mapping()})

    def finish(self, results: Sequence[TrialResult], exit_code: int = 0) -> None:
        """Log the whole study, end every run, and wait for that within bounds.

        Args:
            results: All finished trials, as they stand at the end.
            exit_code: What the study ends with.
        """
        process = self._process
        if process is None:
            return
        self._send({"kind": "end", "results": [r.to_mapping() for r in results], "exit_code": exit_code})
        self._messages.put(None)
        until = time.monotonic() + LIMITS_AT_END * self._limit_seconds
        while True:
            give_up = min(self._last_progress + self._limit_seconds, until)
            try:
                process.wait(timeout=max(0.0, give_up - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if now < min(self._last_progress + self._limit_seconds, until):
                    continue
                took = (
                    f"did nothing for {self._limit_seconds:g} s" if now < until else "did not come to an end"
                )
                self._fail(f"it {took}")
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
        self._process = None
        self._reader.join(timeout=self._limit_seconds)  # what it said last says more than its exit code
        if process.returncode or self._n_answered < self._n_sent:
            self._fail(f"its process ended with {process.returncode}, and not at the end")

    def _start(self) -> subprocess.Popen[bytes]:
        folder = self._folder.wandb.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        base = _base(self._folder)
        kept = KEPT_VARIABLES if self.mode == "online" else ()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_") or k in kept}
        environment = {
            **inherited,
            "WANDB_DATA_DIR": str(_here(base) / folder.relative_to(base) / "data"),
            "WANDB_CACHE_DIR": str(folder / "cache"),
            "WANDB_ERROR_REPORTING": "false",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(Path(memsweep.__file__).parents[1]), os.environ.get("PYTHONPATH")])
            ),
        }
        if self.mode != "online":  # there, it says which server `wandb login` was for
            environment["WANDB_CONFIG_DIR"] = str(folder / "config")
        with (folder / "process.log").open("ab") as stderr:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "memsweep.tracking.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                cwd=base,
                start_new_session=True,  # Ctrl-C ends the study, which then ends W&B's runs properly
            )

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._process is None or self.failure is not None:
            return
        if self._n_sent == self._n_answered:
            self._last_progress = time.monotonic()  # it was idle, not stuck
        try:
            text = json.dumps(message)
        except (TypeError, ValueError) as error:
            self._fail(f"{message['kind']} cannot be told: {error}")
            return
        self._n_sent += 1
        self._messages.put(text.encode() + b"\n")

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        """Run in a thread: a pipe that nobody empties must not hold up the study."""
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            while (message := self._messages.get()) is not None:
                process.stdin.write(message)
                process.stdin.flush()
        with contextlib.suppress(OSError):
            process.stdin.close()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """Run in a thread: note what W&B's process answers."""
        assert process.stdout is not None
        for line in process.stdout:
            self._last_progress = time.monotonic()
            answer = json.loads(line)
            if "failed" in answer:
                self._fail(answer["failed"])
                continue
            self._n_answered += "done" in answer
            self._url = answer.get("url", self._url)
            if "notice" in answer:
                self._warn(f"W&B: {answer['notice']}. Runs are kept; to upload them later: {self.command}")

    def _fail(self, reason: str) -> None:
        with self._lock:
            if self.failure is not None:
                return
            self.failure = reason
        self._warn(
            f"W&B is left out from here on: {reason} (more in {self._folder.wandb / 'process.log'}). "
            f"The study is not affected; what W&B has written so far: {self.command}"
        )

    def _warn(self, sentence: str) -> None:
        """Warn the first time; what follows from it is no news."""
        with self._lock:
            level = logging.INFO if self._has_warned else logging.WARNING
            self._has_warned = True
        log.log(level, "%s", sentence)


def sync_command(folder: StudyFolder) -> str:
    """Return what uploads the runs of a study that are on disk alone, as it is to be typed here."""
    base = _base(folder)
    if base == Path.cwd():
        return f"wandb sync {shlex.quote(str(folder.wandb.resolve().relative_to(base)))}"
    return f"cd {shlex.quote(str(base))} && wandb sync {folder.wandb.name}"


def _base(folder: StudyFolder) -> Path:
    """Return the folder that W&B works in: the current one, or the study's where that is elsewhere."""
    here = Path.cwd()
    return here if folder.path.resolve().is_relative_to(here) else folder.path.resolve()


def _here(base: Path) -> Path:
    """Return a name of the folder that W&B works in which does not say where that is.

    W&B's client notes, and uploads, the absolute path of every file of an artifact, and a home may be in it.
    So uploading later works from the same folder, wherever that has been moved.
    """
    return WORKING_FOLDER if WORKING_FOLDER.exists() else base


def require_tracking(tracking: Mapping[str, Any]) -> None:
    """Raise unless runs can be logged as is asked for; nothing is started.

    Raises:
        ConfigError: If W&B would not take it; it says all that is wrong.
    """
    _checked(tracking)


def _checked(tracking: Mapping[str, Any]) -> tuple[str, str, str | None]:
    """Return mode, project and entity.

    Raises:
        ConfigError: If W&B would not take them; it says all that is wrong.
    """
    mode, entity = str(tracking.get("mode", "disabled")), tracking.get("entity")
    project = str(tracking.get("project") or "memsweep")
    problems = []
    if mode not in MODES:
        problems.append(f"tracking.mode must be one of {', '.join(MODES)}, got {mode!r}")
    for name, value in (("project", project), ("entity", str(entity or ""))):
        if _NO_NAME.search(value) or len(value) > 128:
            problems.append(
                f"tracking.{name} may have 128 characters, none of them / \\ # ? % :, got {value!r}: "
                f"type tracking.{name}={_NO_NAME.sub('-', value)[:128]}"
            )
    if problems:
        raise ConfigError("\n".join(problems))
    return mode, project, None if entity is None else str(entity)
