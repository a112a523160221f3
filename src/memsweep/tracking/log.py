"""A study in Weights & Biases, at no risk to the study: this is the study's side.

All of W&B lives in a process of its own (`wandb_process`), which is told of each finished trial through a
pipe.  So importing it delays no trial, nothing of it can hold the study up or change how it ends, its
variables reach no trial's process, and a study that is killed still leaves finished runs: the process
sees the pipe close, and closes them.  Whatever goes wrong is one warning.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
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
"""How long W&B may go without handling anything, while something waits, before it is given up."""

KEPT_VARIABLES = ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_IDENTITY_TOKEN_FILE")
"""W&B's variables that matter online; no others reach its process: settings are the study's own."""


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
            ConfigError: If there is no such mode.
        """
        self.mode = str(tracking.get("mode", "disabled"))
        if self.mode not in MODES:
            raise ConfigError(f"tracking.mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        self.failure: str | None = None
        self._lock = threading.Lock()
        self._folder = study_folder
        self._limit_seconds = limit_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._n_sent = self._n_answered = 0
        self._last_progress = time.monotonic()
        if self.mode == "disabled":
            return
        try:
            self._process = self._start()
        except OSError as error:
            self._warn(f"its process did not start: {error}")
            return
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, args=(self._process,), daemon=True).start()
        self._send(
            {
                "kind": "study",
                "folder": str(study_folder.path.resolve()),
                "mode": self.mode,
                "project": tracking.get("project") or "memsweep",
                "entity": tracking.get("entity"),
            }
        )

    @property
    def location(self) -> Path | None:
        """The folder of W&B's runs; None when nothing is logged."""
        return None if self.mode == "disabled" or self.failure else self._folder.wandb

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
        while True:
            remaining = self._last_progress + self._limit_seconds - time.monotonic()
            try:
                process.wait(timeout=max(0.0, remaining))
                break
            except subprocess.TimeoutExpired:
                if self._last_progress + self._limit_seconds <= time.monotonic():
                    self._warn(f"it did nothing for {self._limit_seconds:g} s")
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    break
        self._process = None
        self._reader.join(timeout=self._limit_seconds)  # what it said last says more than its exit code
        if process.returncode or self._n_answered < self._n_sent:
            self._warn(f"its process ended with {process.returncode}, and not at the end")

    def _start(self) -> subprocess.Popen[bytes]:
        folder = self._folder.wandb.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        kept = KEPT_VARIABLES if self.mode == "online" else ()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_") or k in kept}
        environment = {
            **inherited,
            "WANDB_DATA_DIR": str(folder / "data"),
            "WANDB_CACHE_DIR": str(folder / "cache"),
            "WANDB_CONFIG_DIR": str(folder / "config"),
            "WANDB_ERROR_REPORTING": "false",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(Path(memsweep.__file__).parents[1]), os.environ.get("PYTHONPATH")])
            ),
        }
        with (folder / "process.log").open("ab") as stderr:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "memsweep.tracking.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
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
            self._warn(f"{message['kind']} cannot be told: {error}")
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
                self._warn(answer["failed"])
                continue
            self._n_answered += 1
            if "notice" in answer:
                log.warning("W&B: %s (in %s)", answer["notice"], self._folder.wandb)

    def _warn(self, reason: str) -> None:
        with self._lock:
            if self.failure is not None:
                return
            self.failure = reason
        log.warning(
            "W&B is left out from here on: %s (more in %s). The study is not affected.",
            reason,
            self._folder.wandb / "process.log",
        )
