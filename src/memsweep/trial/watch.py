"""What the parent sees of a running trial: its phases, its result, its end, in time or not.

It sleeps in a selector between messages: the parent shares the machine that it measures.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memsweep.record.outcome import Phase
from memsweep.trial import process
from memsweep.trial.server import RunningTrial, TemplateProcess

log = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0  # between looks at a template of which nothing is heard
_GRACE_SECONDS = 10.0  # from killing a trial to the word that it has ended; then its template goes too

OnPhase = Callable[[Phase], None]


@dataclass(slots=True)
class Seen:
    """What was seen of one trial.

    Attributes:
        marks: Each phase with the `time.monotonic()` of its beginning.
        result: Pickle of what the callable returned, None when nothing came.
        error: Pickle of (description, traceback, pickle or None), None when nothing was raised.
        status: Wait status; None when the template could not tell.
        failed: Why the template could not start it; None when it could.
        n_orphans: Processes that the trial left behind, and that were ended.
        survivors: Processes of the trial that were killed and are not gone yet.
        has_begun: The template has started it, or failed to; otherwise it ended before it got that far.
        timed_out: It was ended for taking too long.
        ended: `time.monotonic()` of its end.
    """

    marks: list[tuple[Phase, float]] = field(default_factory=list)
    result: bytes | None = None
    error: bytes | None = None
    status: int | None = None
    failed: str | None = None
    n_orphans: int = 0
    survivors: tuple[int, ...] = ()
    has_begun: bool = False
    timed_out: bool = False
    ended: float = 0.0


def watch(
    template: TemplateProcess,
    trial: RunningTrial,
    timeout_seconds: float | None,
    on_phase: OnPhase | None,
    interrupt_fd: int | None = None,
) -> Seen:
    """Wait until `trial` has ended, ending it when its time is up.

    Whatever is raised meanwhile, Ctrl-C included, ends the trial first and is then raised again.

    Args:
        template: What the trial was forked from.
        trial: The trial.
        timeout_seconds: From its request on; None means no limit.
        on_phase: Called with each phase.
        interrupt_fd: When it can be read, the trial is to end; it is not read.

    Raises:
        KeyboardInterrupt: After Ctrl-C in this thread, or when `interrupt_fd` can be read.
    """
    watcher = _Watch(template, trial, on_phase)
    try:
        watcher.wait(timeout_seconds, interrupt_fd)
    except BaseException:
        watcher.on_phase = None
        watcher.end()
        raise
    return watcher.seen


class _Watch:
    def __init__(self, template: TemplateProcess, trial: RunningTrial, on_phase: OnPhase | None) -> None:
        self.seen = Seen(marks=[(Phase.START, trial.began)])
        self.on_phase = on_phase
        self._template = template
        self._trial = trial
        self._messages = bytearray()
        self._status = bytearray()
        self._is_over = False

    def wait(self, timeout_seconds: float | None, interrupt_fd: int | None) -> None:
        """Wait for the end; at the limit, bring it about."""
        limit = None if timeout_seconds is None else self._trial.began + timeout_seconds
        self._listen_until(limit, interrupt_fd)
        if not self._is_over:
            self.seen.timed_out = True
            self.end()

    def end(self) -> None:
        """Kill the trial and wait for the word that it has ended; failing that, end its template too."""
        if self._is_over:
            return
        self._template.kill(self._trial)
        self._listen_until(time.monotonic() + _GRACE_SECONDS)
        if not self._is_over:
            self.seen.survivors = self._template.abandon()
            self._finish()

    def _listen_until(self, limit: float | None, interrupt_fd: int | None = None) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._trial.messages_fd, selectors.EVENT_READ)
            selector.register(self._trial.status_fd, selectors.EVENT_READ)
            if interrupt_fd is not None:
                selector.register(interrupt_fd, selectors.EVENT_READ)
            while not self._is_over:
                remaining = None if limit is None else limit - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return
                patience = _LOOK_SECONDS if remaining is None else min(remaining, _LOOK_SECONDS)
                ready = {key.fd for key, _ in selector.select(patience)}
                if not ready and self._template.go_on():
                    log.warning("the process that trials are forked from had been stopped: it goes on now")
                if self._trial.messages_fd in ready and not self._read_messages():
                    # Closed by the trial, or by its end, of which the other pipe tells.
                    selector.unregister(self._trial.messages_fd)
                if self._trial.status_fd in ready:
                    self._read_status()
                if interrupt_fd in ready and not self._is_over:
                    raise KeyboardInterrupt

    def _read_messages(self) -> bool:
        """Take in what has arrived; return False at the end of the pipe."""
        while True:
            try:
                part = os.read(self._trial.messages_fd, 1 << 20)
            except BlockingIOError:
                return True
            if not part:
                return False
            self._messages += part
            self._take_frames()

    def _take_frames(self) -> None:
        head = process.FRAME.size
        while len(self._messages) >= head:
            kind, size = process.FRAME.unpack_from(self._messages)
            if len(self._messages) < head + size:
                return
            body = bytes(self._messages[head : head + size])
            del self._messages[: head + size]
            if kind == process.PHASE:
                name, _, at = body.decode().partition(" ")
                phase = Phase(name)
                self.seen.marks.append((phase, float(at)))
                if self.on_phase is not None:
                    self.on_phase(phase)
            elif kind == process.RESULT:
                self.seen.result = body
            elif kind == process.ERROR:
                self.seen.error = body

    def _read_status(self) -> None:
        part = os.read(self._trial.status_fd, 1 << 16)
        self._status += part
        while b"\n" in self._status:
            line, _, rest = self._status.partition(b"\n")
            self._status = bytearray(rest)
            said = json.loads(line)
            self.seen.has_begun = True
            if "status" in said:
                self.seen.status = said["status"]
                self.seen.n_orphans, self.seen.survivors = said["orphans"], tuple(said["survivors"])
                self._finish()
            elif "failed" in said:
                self.seen.failed = said["failed"]
                self._finish()
        if not part and not self._is_over:  # the template has ended, and its trials with it
            self.seen.survivors = self._template.abandon()
            self._finish()

    def _finish(self) -> None:
        self.seen.ended = time.monotonic()
        self._is_over = True
        self._read_messages()  # what it said before it ended
