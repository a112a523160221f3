"""A warm process that trials are forked from: everything imported, one thread, no CUDA context.

    parent --control socket--> template --fork--> trial
       ^----------- status pipe ---'                |
       ^----------- message pipe -------------------'

It runs as `python -c BOOT memsweep.trial.template FD` with its complete environment, imports what it is
told to, says whether forking is safe, and then forks a trial for each request.  It takes in what a trial
orphans and ends it, and ends everything when its parent has gone, however that went.  Importing this module
costs nothing but the standard library: what is preloaded is the caller's choice.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import sys
import time
import types
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from memsweep import machine
from memsweep.trial import child, kernel
from memsweep.trial.orphans import Orphans

# The path comes first: this package may be on it and nowhere else.  The last word is for `ps`.
BOOT = """\
import json, socket, sys
control = socket.socket(fileno=int(sys.argv[2]))
hello = json.loads(control.recv(1 << 20))
sys.path[:] = hello["sys_path"]
from memsweep.trial.template import serve
serve(control, hello)
"""
BOOT_FRESH = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop())
from memsweep.trial.child import run_fresh
run_fresh()
"""
_ALWAYS = "cloudpickle"  # every trial's function comes in it
_PATIENCE_SECONDS = 5.0  # for what was killed to be gone; longer only while the kernel cannot end it


@dataclass(slots=True)
class _Trial:
    number: int
    status_fd: int


def serve(control: socket.socket, hello: dict[str, Any]) -> None:
    """Be the template until the parent closes `control` or ends.

    Args:
        control: Where requests come from.
        hello: `preload`, names of modules; `parent`, the parent's process number.
    """
    _Template(control, int(hello["parent"])).serve([_ALWAYS, *hello["preload"]])


class _Template:
    def __init__(self, control: socket.socket, parent_pid: int) -> None:
        self._control = control
        self._parent_pid = parent_pid
        self._pid = os.getpid()
        self._trials: dict[int, _Trial] = {}
        self._orphans = Orphans(_PATIENCE_SECONDS)
        self._is_serving = False
        self._is_ending = False
        self._wake_r, self._wake_w = os.pipe()

    def serve(self, preload: Sequence[str]) -> None:
        kernel.become_subreaper()
        self._listen_to_signals()
        self._send(_preloaded(preload))
        self._is_serving = True
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_r, select.POLLIN)
        while not self._is_ending:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake_r in ready:
                with suppress(BlockingIOError):
                    os.read(self._wake_r, 4096)
            self._reap()
            if self._control.fileno() in ready:
                self._take_request()
        self._end()

    def _listen_to_signals(self) -> None:
        os.set_blocking(self._wake_r, False)
        os.set_blocking(self._wake_w, False)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a parent that blocks SIGCHLD passes that on
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_end)
        signal.signal(signal.SIGHUP, self._on_parent_death)
        kernel.signal_on_parent_death(signal.SIGHUP)
        self._on_parent_death(signal.SIGHUP, None)  # it may have ended already

    def _on_end(self, _number: int, _frame: types.FrameType | None) -> None:
        self._is_ending = True
        if not self._is_serving:  # still importing, so there is no trial
            os._exit(0)

    def _on_parent_death(self, number: int, frame: types.FrameType | None) -> None:
        # The signal also comes when only the thread that started this process has ended.
        if os.getppid() != self._parent_pid:
            self._on_end(number, frame)

    def _take_request(self) -> None:
        message, fds, _, _ = socket.recv_fds(self._control, 1 << 16, 3, socket.MSG_CMSG_CLOEXEC)
        if not message:
            self._is_ending = True
            return
        request = json.loads(message)
        if "kill" in request:
            for pid, trial in self._trials.items():
                if trial.number == request["kill"]:
                    kernel.kill(pid)
            return
        self._start(request, *fds)

    def _start(self, request: dict[str, Any], payload_fd: int, messages_fd: int, status_fd: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            _tell(status_fd, {"failed": f"cannot fork: {error}"})
            os.close(status_fd)
        else:
            if pid == 0:
                self._become_trial(request, payload_fd, messages_fd, status_fd)
            self._trials[pid] = _Trial(int(request["start"]), status_fd)
            _tell(status_fd, {"pid": pid})
        os.close(payload_fd)
        os.close(messages_fd)

    def _become_trial(
        self, request: dict[str, Any], payload_fd: int, messages_fd: int, status_fd: int
    ) -> NoReturn:
        """In the fork: let go of what is the template's, and live the trial's life."""
        signal.set_wakeup_fd(-1)
        others = [trial.status_fd for trial in self._trials.values()]
        for fd in (self._control.detach(), self._wake_r, self._wake_w, status_fd, *others):
            os.close(fd)
        if request["fresh"]:
            _exec(payload_fd, messages_fd, self._pid, request["began"])
        child.run(payload_fd, messages_fd, request["began"], self._pid, fresh=False)

    def _reap(self) -> None:
        for pid, trial in list(self._trials.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                del self._trials[pid]
                survivors = self._orphans.end(self._trials, pid)
                n_orphans = self._orphans.taken_count(pid)
                _tell(trial.status_fd, {"status": status, "orphans": n_orphans, "survivors": survivors})
                os.close(trial.status_fd)

    def _end(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._trials and time.monotonic() < deadline:
            for pid in self._trials:
                kernel.kill(pid)
            self._reap()
            time.sleep(0.001)
        self._trials.clear()
        self._orphans.end(self._trials)
        os._exit(0)

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(OSError):  # the parent has gone: the loop will see that
            self._control.send(json.dumps(message).encode())


def _preloaded(names: Sequence[str]) -> dict[str, Any]:
    """Import the modules and return what the parent must know: what failed, and what makes forking unsafe."""
    began = time.monotonic()
    failed = {}
    with ExitStack() as stack:
        for name in names:
            try:
                module = importlib.import_module(name)
            except (Exception, SystemExit) as error:  # a trial that needs it will say so, with its traceback
                failed[name] = f"{type(error).__name__}: {error}"[:1000]
            else:
                if name == "torch":
                    stack.enter_context(_capability_from_driver(module))
    # Objects that exist now are never garbage; a collection in a fork would touch, so copy, their pages.
    gc.collect()
    gc.freeze()
    return {"failed": failed, "unsafe": _reasons_against_forking(), "seconds": time.monotonic() - began}


@contextmanager
def _capability_from_driver(torch: types.ModuleType) -> Iterator[None]:
    """Answer the question for a device's compute capability from NVML, which makes no CUDA context.

    bitsandbytes asks while it is imported, to choose its library, and peft imports it; torch's own answer
    initializes CUDA, after which no fork can use it.  Delete when `import bitsandbytes` leaves
    `torch.cuda.is_initialized()` False.  Source: bitsandbytes==0.50 cuda_specs.py get_compute_capabilities.
    """
    capability = machine.compute_capability() if getattr(torch.version, "cuda", None) else None
    if capability is None:
        yield
        return
    major, minor = (int(digit) for digit in f"{capability:.1f}".split("."))
    original = torch.cuda.get_device_capability
    torch.cuda.get_device_capability = lambda device=None: (major, minor)  # noqa: ARG005, torch's signature
    try:
        yield
    finally:
        torch.cuda.get_device_capability = original


def _reasons_against_forking() -> list[str]:
    """Return why a fork of this process would not be a sound trial; empty when it is."""
    reasons = []
    threads = kernel.thread_names()
    if len(threads) != 1:
        reasons.append(f"imports have started {len(threads) - 1} thread(s): {', '.join(sorted(threads)[:8])}")
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        reasons.append("imports have initialized CUDA")
    # The driver opens it in cuInit; NVML, which only asks, does not.
    elif kernel.open_devices("/dev/nvidia-uvm"):
        reasons.append("imports have initialized the CUDA driver (PYTORCH_NVML_BASED_CUDA_CHECK=1 avoids it)")
    return reasons


def _exec(payload_fd: int, messages_fd: int, template_pid: int, began: float) -> NoReturn:
    """Become a fresh interpreter with the trial's own environment from its first instruction."""
    try:
        with open(payload_fd, "rb", closefd=False) as file:
            file.seek(0)
            payload: child.Payload = pickle.load(file)
        for fd in (payload_fd, messages_fd):
            os.set_inheritable(fd, True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is ignored stays so through execve
        numbers = (payload_fd, messages_fd, template_pid, repr(began))
        words = ["-P", "-c", BOOT_FRESH, *map(str, numbers), json.dumps(payload.sys_path)]
        os.execve(sys.executable, [sys.executable, *words], dict(payload.environment))
    finally:
        os._exit(127)


def _tell(fd: int, message: dict[str, Any]) -> None:
    with suppress(OSError):
        os.write(fd, json.dumps(message).encode() + b"\n")
