"""One trial in one process: start it, wait without spinning, end it in time, leave nothing behind.

    with ProcessPool() as pool:
        end = pool.run(ProcessRequest(function=pickled(f), environment=dict(os.environ), folder=folder))

A trial is forked from a warm template where that is sound, and run in a fresh interpreter where it is not.
The pool keeps a few templates, one for each environment that a fork could not give itself
(`memsweep.trial.variables`), and survives whatever a trial or a template does.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import cloudpickle

from memsweep.errors import ConfigError, ProcessEnded, TrialError
from memsweep.record.folder import TrialFolder
from memsweep.trial import kernel
from memsweep.trial.answer import ProcessEnd, TrialTraceback, end_of
from memsweep.trial.child import Payload
from memsweep.trial.lease import Lease
from memsweep.trial.server import TemplateGone, TemplateProcess, absolute_sys_path
from memsweep.trial.variables import template_key
from memsweep.trial.watch import OnPhase, watch
from memsweep.units import bytes_text

__all__ = ["ProcessEnd", "ProcessPool", "ProcessRequest", "StartMethod", "TrialTraceback", "pickled"]

log = logging.getLogger(__name__)

_ATTEMPTS = 3  # to find a template that is still there
_MOST_GROWN_BYTES = 64 << 20  # what imports have left running in a template may leak there, trial after trial


class StartMethod(StrEnum):
    """How a trial's process comes into being.

    Attributes:
        AUTO: Forked from a warm template where that is sound, else a fresh interpreter, saying so once.
        FORK: Forked, or refused with the reason.
        SPAWN: A fresh interpreter, which imports everything again.
    """

    AUTO = "auto"
    FORK = "fork"
    SPAWN = "spawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRequest:
    """What one process is to do.

    Attributes:
        function: `pickled(callable)`; it is called without arguments.
        environment: Every variable of the process.
        folder: An existing folder; stdout.log and stderr.log are written there.
        timeout_seconds: From the request to the end; None means no limit.
        preload: Modules that the template imports before the first trial.
        lease: What it has of the machine; None for all of it.  Its variables are part of `environment`.
    """

    function: bytes
    environment: Mapping[str, str]
    folder: Path
    timeout_seconds: float | None = None
    preload: tuple[str, ...] = ()
    lease: Lease | None = None


def pickled(function: Callable[[], Any]) -> bytes:
    """Return `function` in a form that another process can call; functions of `__main__` go by value."""
    return bytes(cloudpickle.dumps(function))


class ProcessPool:
    """Runs trials in processes of their own, and keeps the templates that they are forked from.

    Its methods may be called from several threads at once; each runs its own trial.

    Args:
        start_method: How processes come into being.
        max_templates: Templates kept alive; each holds what it has imported (about 0.4 GiB with torch and
            TRL).  The least recently used idle one is closed for a new one, and any idle one that has grown.
        import_seconds: What a template may take for its imports.
    """

    def __init__(
        self,
        *,
        start_method: StartMethod | str = StartMethod.AUTO,
        max_templates: int = 3,
        import_seconds: float = 600.0,
    ) -> None:
        try:
            self._start_method = StartMethod(start_method)
        except ValueError:
            allowed = ", ".join(StartMethod)
            raise ConfigError(f"start_method must be one of {allowed}, got {start_method!r}") from None
        if max_templates < 1:
            raise ConfigError(f"max_templates must be at least 1, got {max_templates}")
        self._max_templates = max_templates
        self._import_seconds = import_seconds
        self._own_environment = dict(os.environ)
        self._templates: OrderedDict[object, TemplateProcess] = OrderedDict()
        self._unsound: dict[object, str] = {}
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._is_interrupted = False
        self._interrupt_fd = os.eventfd(0)
        weakref.finalize(self, os.close, self._interrupt_fd)
        weakref.finalize(self, _close_all, self._templates)

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool."""
        self.close()

    def prepare(self, environment: Mapping[str, str], preload: Sequence[str] = ()) -> None:
        """Start the template that a request with this environment needs, without waiting for it."""
        if self._start_method is not StartMethod.SPAWN:
            self._leave(self._template(environment, tuple(preload)))

    def run(self, request: ProcessRequest, on_phase: OnPhase | None = None) -> ProcessEnd:
        """Run one process to its end, however it ends.

        Args:
            request: What it is to do.
            on_phase: Called with each phase that the process reports, as it begins.

        Raises:
            KeyboardInterrupt: After Ctrl-C in this thread, or `interrupt` in another; the process and all it
                started are gone by then.
            TrialError: If `start_method` is fork and forking is unsound.
        """
        n_oom_kills = kernel.n_oom_kills()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                template, fresh = self._ready_template(request)
                try:
                    trial = template.start(_payload(request, template), fresh=fresh)
                    try:
                        seen = watch(template, trial, request.timeout_seconds, on_phase, self._interrupt_fd)
                    finally:
                        trial.close()
                finally:
                    self._leave(template)
            except ProcessEnded as error:
                if self._is_interrupted:
                    raise KeyboardInterrupt from error
                if isinstance(error, TemplateGone) and attempt < _ATTEMPTS:
                    continue  # it was ended while idle, so the trial has not begun: begin it elsewhere
                return ProcessEnd(error=error, template_died=True)
            if seen.has_begun or attempt == _ATTEMPTS:
                break
        n_oom_kills = kernel.n_oom_kills() - n_oom_kills
        return end_of(seen, request.folder, request.preload, "spawn" if fresh else "fork", n_oom_kills)

    def interrupt(self) -> None:
        """Have every `run`, in any thread, end its process and raise KeyboardInterrupt; until `close`."""
        self._is_interrupted = True
        os.eventfd_write(self._interrupt_fd, 1)
        with self._lock:
            importing = [template for template in self._templates.values() if template.is_importing]
        for template in importing:  # nobody listens to the descriptor yet
            template.abandon()

    def close(self) -> None:
        """End every template, and every trial that still runs."""
        _close_all(self._templates)
        if self._is_interrupted:
            self._is_interrupted = False
            os.eventfd_read(self._interrupt_fd)

    def _ready_template(self, request: ProcessRequest) -> tuple[TemplateProcess, bool]:
        """Return a template whose imports are done, and whether the trial must be a fresh interpreter.

        Whoever has it leaves it again.
        """
        if self._start_method is StartMethod.SPAWN:
            return self._bare(), True
        key = (template_key(request.environment), request.preload)
        if key in self._unsound:
            return self._bare(), True
        template = self._template(request.environment, request.preload)
        try:
            readiness = template.wait_ready(self._import_seconds)
        except BaseException as error:
            self._leave(template)
            if isinstance(error, ProcessEnded):
                self._discard(key, template)
            raise
        for module, why in readiness.failed.items():
            self._say(f"{module} cannot be imported ahead of the trials: {why}")
        if not readiness.unsafe:
            return template, False
        reasons = "; ".join(readiness.unsafe)
        self._leave(template)
        self._discard(key, template)
        if self._start_method is StartMethod.FORK:
            raise TrialError(f"start_method=fork is not sound here: {reasons}; use auto or spawn")
        self._unsound[key] = reasons
        self._say(f"each trial starts in a fresh interpreter, because a fork would be unsound: {reasons}")
        return self._bare(), True

    def _bare(self) -> TemplateProcess:
        """Return a template that has imported nothing, for fresh interpreters to come from."""
        template = self._template(self._own_environment, ())
        try:
            template.wait_ready(self._import_seconds)
        except BaseException:
            self._leave(template)
            raise
        return template

    def _template(self, environment: Mapping[str, str], preload: tuple[str, ...]) -> TemplateProcess:
        """Return a template, which stays until `_leave`: no other thread makes room in its place."""
        key = (template_key(environment), preload)
        with self._lock:
            if self._is_interrupted:
                raise KeyboardInterrupt
            template = self._templates.get(key)
            if template is None or not template.is_alive:
                if template is not None:
                    template.abandon()
                self._make_room()
                try:
                    template = TemplateProcess(environment, preload)
                except OSError as error:
                    self._templates.pop(key, None)
                    raise ProcessEnded(f"no process can be started: {error}") from error
                self._templates[key] = template
            self._templates.move_to_end(key)
            template.n_users += 1
            return template

    def _leave(self, template: TemplateProcess) -> None:
        """Count on a template no more; one that has grown is ended once nobody does."""
        with self._lock:
            template.n_users -= 1
            grown_bytes = 0 if template.n_users else template.grown_bytes
            if grown_bytes <= _MOST_GROWN_BYTES:
                return
            for key in [key for key, one in self._templates.items() if one is template]:
                del self._templates[key]
        log.info("the template of the trials has grown by %s: a new one follows", bytes_text(grown_bytes))
        template.close()

    def _make_room(self) -> None:
        idle = [key for key, template in self._templates.items() if template.n_users == 0]
        for key in idle[: max(0, len(self._templates) + 1 - self._max_templates)]:
            self._templates.pop(key).close()

    def _discard(self, key: object, template: TemplateProcess) -> None:
        """End a template; one that another thread has put in its place stays."""
        with self._lock:
            if self._templates.get(key) is template:
                del self._templates[key]
        template.abandon()

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            log.warning("%s", sentence)


def _close_all(templates: OrderedDict[object, TemplateProcess]) -> None:
    while templates:
        _, template = templates.popitem()
        template.close()


def _payload(request: ProcessRequest, template: TemplateProcess) -> bytes:
    folder = TrialFolder(request.folder.absolute())
    payload = Payload(
        function=request.function,
        environment={**request.environment, **template.mark},
        cwd=os.getcwd(),  # noqa: PTH109, as text
        sys_path=absolute_sys_path(),
        stdout=str(folder.stdout),
        stderr=str(folder.stderr),
        lease=request.lease,
    )
    return pickle.dumps(payload)
