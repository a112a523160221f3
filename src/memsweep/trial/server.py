"""The parent's end of one template process: start it, ask it for a trial, end it.

What the template does is in `memsweep.trial.template`; who decides which template a trial gets is
`memsweep.trial.isolate`.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memsweep.errors import ProcessEnded
from memsweep.trial import kernel
from memsweep.trial.template import BOOT
from memsweep.trial.variables import TEMPLATE, template_environment

_PATIENCE_SECONDS = 8.0  # for a template to end by itself: longer than it gives its own children
_numbers = itertools.count()


class TemplateGone(ProcessEnded):
    """A template ended before it took the request: another one can be asked."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a template says of itself once its imports are done.

    Attributes:
        failed: Module to why it could not be imported.
        unsafe: Why forking it would be unsound; empty when it is sound.
        seconds: What the imports took.
    """

    failed: Mapping[str, str]
    unsafe: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """A trial that a template has been asked for.

    Attributes:
        number: What the template knows it by.
        messages_fd: Where the trial's phases and result arrive; closed by `close`.
        status_fd: Where the template says how it began and ended; at its end of file the template has ended.
        began: `time.monotonic()` of the request.
    """

    number: int
    messages_fd: int
    status_fd: int
    began: float

    def close(self) -> None:
        """Close both pipes."""
        os.close(self.messages_fd)
        os.close(self.status_fd)


class TemplateProcess:
    """One template process.  Its methods may be called from several threads.

    Attributes:
        n_users: Who counts on it: as long as there are some, it is not closed for another.  Kept by its pool.
    """

    def __init__(self, environment: Mapping[str, str], preload: Sequence[str]) -> None:
        self.n_users = 0
        self._owner = os.getpid()
        self._token = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._readiness: Readiness | None = None
        self._ready_bytes: int | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, lives as long as the process
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-P", "-c", BOOT, "memsweep.trial.template", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command,
                env=template_environment(environment, self._token),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches the parent, which decides
            )
        hello = {"preload": list(preload), "parent": os.getpid(), "sys_path": absolute_sys_path()}
        with suppress(OSError):  # it ended at once: `wait_ready` says so
            self._control.send(json.dumps(hello).encode())

    @property
    def pid(self) -> int:
        """The template's process number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked for a trial."""
        return self._process.poll() is None

    @property
    def is_importing(self) -> bool:
        """Whether nobody has heard yet that its imports are done."""
        return self._readiness is None

    @property
    def grown_bytes(self) -> int:
        """By how much its own memory has grown since its imports were done; 0 where that is not known."""
        now_bytes = kernel.anonymous_bytes(self.pid) if self.is_alive else None
        if now_bytes is None or self._ready_bytes is None:
            return 0
        return max(0, now_bytes - self._ready_bytes)

    @property
    def mark(self) -> dict[str, str]:
        """The variable that its descendants carry, for a trial's environment."""
        return {TEMPLATE: self._token}

    def wait_ready(self, timeout_seconds: float) -> Readiness:
        """Wait for the imports, once; afterwards return what was found then.

        Raises:
            ProcessEnded: If it ended while importing, or took longer; with its last lines.
        """
        with self._lock:
            if self._readiness is None:
                try:
                    self._control.settimeout(timeout_seconds)
                    message = self._control.recv(1 << 20)
                    self._control.settimeout(None)
                except TimeoutError:
                    problem = f"did not finish its imports in {timeout_seconds:.0f} s"
                    raise self._ended(problem) from None
                except OSError:  # it has ended, or another thread has closed this end
                    message = b""
                if not message:
                    raise self._ended("ended while it was importing")
                said = json.loads(message)
                self._readiness = Readiness(said["failed"], tuple(said["unsafe"]), said["seconds"])
                self._ready_bytes = kernel.anonymous_bytes(self.pid)
            return self._readiness

    def start(self, payload: bytes, *, fresh: bool) -> RunningTrial:
        """Ask for a trial.

        Args:
            payload: A pickled `memsweep.trial.child.Payload`.
            fresh: Run it in a fresh interpreter instead of the fork itself.

        Raises:
            TemplateGone: If the template has ended.
        """
        number = next(_numbers)
        payload_fd = os.memfd_create("trial")
        messages_r, messages_w = os.pipe()
        status_r, status_w = os.pipe()
        began = time.monotonic()
        try:
            with open(payload_fd, "wb", closefd=False) as file:
                file.write(payload)
            request = json.dumps({"start": number, "fresh": fresh, "began": began}).encode()
            socket.send_fds(self._control, [request], [payload_fd, messages_w, status_w])
        except OSError as error:
            os.close(messages_r)
            os.close(status_r)
            raise TemplateGone(f"the template process has ended: {error}") from error
        finally:
            for fd in (payload_fd, messages_w, status_w):
                os.close(fd)
        os.set_blocking(messages_r, False)
        return RunningTrial(number, messages_r, status_r, began)

    def go_on(self) -> bool:
        """Let the template go on if somebody has stopped it, which would be waited for for ever.

        Returns:
            Whether somebody had.
        """
        if not kernel.is_stopped(self.pid):
            return False
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)
        return True

    def kill(self, trial: RunningTrial) -> None:
        """Have the template end a trial, its process group and what it left; the status pipe tells when."""
        with suppress(OSError):
            self._control.send(json.dumps({"kill": trial.number}).encode())

    def abandon(self) -> tuple[int, ...]:
        """End the template and all its descendants at once, whatever state they are in.

        Returns:
            Those that are not gone yet.
        """
        if os.getpid() != self._owner:
            return ()
        with suppress(ProcessLookupError):
            self._process.kill()
        survivors = kernel.kill_all_with(TEMPLATE, self._token)
        self.close()
        return survivors

    def close(self) -> None:
        """Let the template end, with every trial it still has, and wait for it."""
        if os.getpid() != self._owner:  # a fork of the parent must not end what it does not own
            return
        self._control.close()
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            kernel.kill_all_with(TEMPLATE, self._token)
            with suppress(subprocess.TimeoutExpired):  # only while the kernel cannot end it
                self._process.wait(_PATIENCE_SECONDS)
        self._log.close()

    def _ended(self, problem: str) -> ProcessEnded:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.returncode
        how = "" if code is None else f", exit code {code}" if code >= 0 else f", signal {-code}"
        said = b""
        with suppress(ValueError):  # closed, because another thread has ended the template
            self._log.seek(0)
            said = self._log.read()
        lines = said[-4096:].decode("utf-8", "replace").strip().splitlines()[-8:]
        text = "".join(f"\n  {line}" for line in lines)
        message = f"the process that trials are forked from {problem}{how}{text}"
        negative = code is not None and code < 0
        return ProcessEnded(message, None if negative else code, -code if code and negative else None)


def absolute_sys_path() -> list[str]:
    """Return where this process looks for modules, the working directory by its name."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def describe_exit(status: int) -> tuple[int | None, int | None]:
    """Return (exit code, signal) of a wait status: one of them is None."""
    code: Any = os.waitstatus_to_exitcode(status)
    return (None, -code) if code < 0 else (code, None)
