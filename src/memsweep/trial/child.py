"""A trial's process from its first instruction to its last.

It comes into being in one of two ways: forked from a warm template, or as a fresh interpreter that the
template's fork has turned itself into.  Either way it leads its own session, dies with the template, takes
in what its children orphan, writes to the trial's logs from the file descriptors up, and ends without
running exit handlers, which after a fork would be the template's.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from memsweep.errors import TrialError
from memsweep.machine import ALLOCATOR_VARIABLES
from memsweep.trial import kernel, process
from memsweep.trial.lease import Lease
from memsweep.trial.variables import LATE, TRIAL, early


@dataclass(frozen=True, slots=True)
class Payload:
    """What a trial's process is to do.

    Attributes:
        function: Pickle of a callable without arguments.
        environment: Every variable.
        cwd: Working directory.
        sys_path: Where modules are looked for.
        stdout: File for its standard output.
        stderr: File for its standard error.
        lease: What it has of the machine; None for all of it.
    """

    function: bytes
    environment: Mapping[str, str]
    cwd: str
    sys_path: list[str]
    stdout: str
    stderr: str
    lease: Lease | None = None


def run(payload_fd: int, messages_fd: int, began: float, parent_pid: int, *, fresh: bool) -> NoReturn:
    """Live a trial's whole life.  Never returns and never raises.

    Args:
        payload_fd: File holding a pickled `Payload`.
        messages_fd: Pipe to the controller, for phases and the result.
        began: `time.monotonic()` of just before the fork.
        parent_pid: The template.
        fresh: This is a fresh interpreter; otherwise a fork that must shed the template's habits.
    """
    pid = os.getpid()

    def send(kind: bytes, body: bytes) -> None:
        if os.getpid() != pid:  # a fork that the trial made of itself has nothing to say
            return
        view = memoryview(process.FRAME.pack(kind, len(body)) + body)
        while view:
            view = view[os.write(messages_fd, view) :]

    code = 1
    try:
        _settle(parent_pid)
        with open(payload_fd, "rb") as file:
            file.seek(0)
            payload: Payload = pickle.load(file)
        redirect(payload.stdout, payload.stderr)
        if not fresh:
            _shed()
            _apply_late(payload.environment)
        os.environ[TRIAL] = str(pid)
        if payload.lease is not None:
            # Threads are pinned like the one that starts them, and as yet there is only this one.
            os.sched_setaffinity(0, payload.lease.cores)
        sys.path[:] = payload.sys_path
        os.chdir(payload.cwd)
        process.enter(send, began, payload.lease)
        _check_environment(payload.environment)
        value = pickle.loads(payload.function)()
        _flush()
        send(process.RESULT, _pickled_result(value))
        code = 0
    except SystemExit as request:
        code = _exit_code(request)
    except BaseException as error:
        traceback.print_exc()
        with suppress(OSError):
            send(process.ERROR, _pickled_error(error))
    finally:
        _flush()
        os._exit(code)


def run_fresh() -> NoReturn:
    """Live a trial's life in this fresh interpreter; the arguments are on the command line."""
    payload_fd, messages_fd, parent_pid = (int(word) for word in sys.argv[1:4])
    run(payload_fd, messages_fd, float(sys.argv[4]), parent_pid, fresh=True)


def _settle(parent_pid: int) -> None:
    """Take a session of one's own, and tie one's end to the template's."""
    os.setsid()
    kernel.signal_on_parent_death(signal.SIGKILL)
    if os.getppid() != parent_pid:  # it ended before the line above
        os._exit(1)
    kernel.become_subreaper()
    kernel.volunteer_for_the_oom_killer()


def redirect(stdout: str, stderr: str) -> None:
    """Send everything that this process and its children print to two files, which are emptied."""
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    for number, path, stream in ((1, stdout, sys.stdout), (2, stderr, sys.stderr)):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        file = os.open(path, flags, 0o644)
        os.dup2(file, number)
        os.close(file)
        # A line must be in the file before a segmentation fault loses the buffer.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()


def _shed() -> None:
    """Return to what a fresh interpreter starts with: signals and exit handlers."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    atexit._clear()


def _apply_late(environment: Mapping[str, str]) -> None:
    """Set the variables that a fork may still change, before anything reads them.

    The others are as the template was started with, plus what imports have set: as in a fresh
    interpreter after the same imports.
    """
    for name in [name for name in os.environ if LATE.matches(name) and name not in environment]:
        del os.environ[name]
    os.environ.update({name: value for name, value in environment.items() if LATE.matches(name)})
    tempfile.tempdir = None  # where temporary files are kept, as a variable said that may say otherwise now


def _check_environment(environment: Mapping[str, str]) -> None:
    """Raise unless the variables are in force, not only set.

    Raises:
        TrialError: With each difference.
    """
    started, wanted = early(kernel.initial_environment()), early(environment)
    problems = [
        f"{name} is {started.get(name)!r}, asked for {wanted.get(name)!r}"
        for name in sorted(started.keys() | wanted.keys())
        if started.get(name) != wanted.get(name)
    ]
    problems += [
        f"{name} is {os.environ.get(name)!r}, asked for {environment.get(name)!r}"
        for name in sorted(environment)
        if LATE.matches(name) and os.environ.get(name) != environment[name]
    ]
    problems += _allocator_problems(environment)
    if problems:
        raise TrialError("the trial's environment is not in force: " + "; ".join(problems))


def _allocator_problems(environment: Mapping[str, str]) -> list[str]:
    """Return what torch's allocators took as their settings, where it is not what was asked for.

    Asking makes torch read the variables, if nothing has yet.  Before 2.13 there is no way to ask.
    """
    asked = next((environment[name] for name in ALLOCATOR_VARIABLES if environment.get(name)), None)
    torch = sys.modules.get("torch")
    read = getattr(getattr(torch, "_C", None), "_accelerator_getAllocatorSettings", None)
    if asked is None or read is None:
        return []
    found = read()
    return [] if found == asked else [f"torch's allocator settings are {found!r}, asked for {asked!r}"]


def _exit_code(request: SystemExit) -> int:
    """Return the exit code that the interpreter would have ended with."""
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code & 0xFF
    print(request.code, file=sys.stderr)
    return 1


def _pickled_result(value: Any) -> bytes:
    """Return `value` pickled.

    Raises:
        TrialError: If it cannot be.
    """
    try:
        return _pickled(value)
    except Exception as error:
        message = f"its result, a {type(value).__name__}, cannot be sent: {error}"
        raise TrialError(message) from error


def _pickled(value: Any) -> bytes:
    """Return `value` pickled, with cloudpickle only where the standard library cannot."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        import cloudpickle

        return bytes(cloudpickle.dumps(value))


def _pickled_error(error: BaseException) -> bytes:
    """Return (description, traceback, pickle or None) of `error`, pickled."""
    described = f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    try:
        inner = _pickled(error)
        pickle.loads(inner)  # an exception whose __init__ takes other arguments pickles, and does not load
    except Exception:
        return pickle.dumps((described, text, None))
    return pickle.dumps((described, text, inner))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # a full disk, or a stream that the trial has closed
            continue
