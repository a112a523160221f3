"""How a process ended, made out of what was seen of it.

What a trial sends is unpickled here with one restriction: its exceptions may not bring into the controller
what only trials import.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from memsweep.errors import ProcessEnded, TrialError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Phase
from memsweep.trial import process
from memsweep.trial.server import describe_exit
from memsweep.trial.watch import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How one process ended.

    Attributes:
        returned: What the callable returned; None when it did not, see `has_returned`.
        has_returned: The callable returned, and its result arrived.
        error: The exception that the callable raised, or why there was no process; None otherwise.
        exit_code: What the process exited with; None when a signal ended it, or nobody could tell.
        signal: The signal that ended it; None when there was none, or nobody could tell.
        timed_out: It was ended for taking longer than `timeout_seconds`.
        phase: Where in its life it was at the end.
        seconds: By phase, `start` from the request on, and `total`.
        start_method: `fork` or `spawn`.
        last_lines: The end of what it wrote to stderr, or to stdout.
        n_orphans: Processes that it left behind, and that were ended.
        n_oom_kills: Processes that the kernel ended for want of memory meanwhile, on the whole host.
        survivors: Its processes that were killed and are not gone yet.
        template_died: The process that it was forked from ended before it did.
    """

    returned: Any = None
    has_returned: bool = False
    error: BaseException | None = None
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    phase: Phase = Phase.START
    seconds: Mapping[str, float] = field(default_factory=dict)
    start_method: str = "fork"
    last_lines: tuple[str, ...] = ()
    n_orphans: int = 0
    n_oom_kills: int = 0
    survivors: tuple[int, ...] = ()
    template_died: bool = False


class TrialTraceback(Exception):
    """Where in the trial's process an exception was raised, as text."""

    def __str__(self) -> str:
        """Return the traceback on lines of its own."""
        return f"\n{self.args[0]}"


def end_of(
    seen: Seen, folder: Path, preload: tuple[str, ...], start_method: str, n_oom_kills: int
) -> ProcessEnd:
    """Return what was seen as a `ProcessEnd`.

    Args:
        seen: What was seen.
        folder: Where the process wrote its logs.
        preload: Modules that only trials import.
        start_method: `fork` or `spawn`.
        n_oom_kills: How many processes the kernel ended for want of memory meanwhile.
    """
    code, number = (None, None) if seen.status is None else describe_exit(seen.status)
    error: BaseException | None = None
    returned, has_returned = None, False
    if seen.failed is not None:
        error = ProcessEnded(seen.failed)
    elif seen.error is not None:
        error = _raised(seen.error, preload)
    elif seen.result is not None:
        try:
            returned, has_returned = pickle.loads(seen.result), True
        except Exception as problem:  # of a class that this process does not have, say
            error = TrialError(f"its result cannot be read: {problem}")
    seconds = process.durations(seen.marks, seen.ended)
    return ProcessEnd(
        returned=returned,
        has_returned=has_returned,
        error=error,
        exit_code=code,
        signal=number,
        timed_out=seen.timed_out,
        phase=process.last_phase(seen.marks),
        seconds={**seconds, "total": seen.ended - seen.marks[0][1]},
        start_method=start_method,
        last_lines=TrialFolder(folder).last_lines(),
        n_orphans=seen.n_orphans,
        n_oom_kills=n_oom_kills,
        survivors=seen.survivors,
        template_died=seen.status is None and seen.failed is None and not seen.timed_out,
    )


class _Unpickler(pickle.Unpickler):
    """Refuses classes of modules that only trials import: torch's errors would bring all of torch."""

    def __init__(self, data: bytes, refused: frozenset[str]) -> None:
        super().__init__(BytesIO(data))
        self._refused = refused

    def find_class(self, module: str, name: str) -> Any:
        """Return the class, unless finding it would import what is refused."""
        if module.partition(".")[0] in self._refused and module not in sys.modules:
            raise pickle.UnpicklingError(f"{module}.{name} is not for this process")
        return super().find_class(module, name)


def _raised(data: bytes, preload: tuple[str, ...]) -> BaseException:
    """Return the exception that a trial raised, or one that describes it where it cannot be had."""
    described, trace, inner = pickle.loads(data)
    refused = frozenset(name.partition(".")[0] for name in preload)
    error: BaseException
    try:
        error = _Unpickler(inner, refused).load()
    except Exception:
        error = TrialError(described)
    error.__cause__ = TrialTraceback(trace)
    return error
