"""What code inside a trial's process may ask and tell: which phase it is in, how long each one took.

Outside a trial's process `report_phase` does nothing, so that the same code runs under a debugger.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise

from memsweep.record.outcome import Phase
from memsweep.record.rivals import Rivals
from memsweep.trial.lease import Lease

FRAME = struct.Struct("!cQ")  # kind, number of bytes that follow
PHASE, RESULT, ERROR = b"P", b"R", b"E"
BEAT, MEET = b"B", b"M"  # of one of several processes, to the one that started them

Send = Callable[[bytes, bytes], None]

_send: Send | None = None
_marks: list[tuple[Phase, float]] = []
_lock = threading.Lock()
_known: dict[str, int] = {}
_rivals: Rivals | None = None
_lease: Lease | None = None


def in_trial_process() -> bool:
    """Tell whether this process was made for one trial."""
    return _send is not None


def report_phase(phase: Phase) -> None:
    """Tell the parent, at once, that `phase` begins."""
    if _send is None:
        return
    with _lock:
        now = time.monotonic()
        _marks.append((phase, now))
        _send(PHASE, f"{phase} {now!r}".encode())


def become_one_of_several(send: Send) -> None:
    """Let this process, which a trial's own has started, tell that one of its phases.

    Args:
        send: Takes a kind and a body.
    """
    global _send
    _send = send


def phases() -> dict[str, float]:
    """Return the seconds spent in each phase so far, by its name; `start` counts from before the fork."""
    return durations(_marks, time.monotonic())


def known_set_ups() -> dict[str, int]:
    """Return, for each effective hash that the study has measured already, the number of that trial."""
    return dict(_known)


def learn_set_ups(known: Mapping[str, int]) -> None:
    """Let `known_set_ups` return `known`, for the rest of this process."""
    _known.update(known)


def known_rivals() -> Rivals | None:
    """Return what this trial is held against; None when it is to be measured to its end."""
    return _rivals


def learn_rivals(rivals: Rivals | None) -> None:
    """Let `known_rivals` return `rivals`, for the rest of this process."""
    global _rivals
    _rivals = rivals


def lease() -> Lease | None:
    """Return what this trial has of the machine; None when it has all of it."""
    return _lease


def durations(marks: list[tuple[Phase, float]], end: float) -> dict[str, float]:
    """Return the seconds between `marks`, the last one lasting until `end`; a phase entered twice adds up."""
    seconds: dict[str, float] = {}
    for (phase, begin), (_, following) in pairwise([*marks, (Phase.END, end)]):
        seconds[phase.value] = seconds.get(phase.value, 0.0) + following - begin
    return seconds


def last_phase(marks: list[tuple[Phase, float]]) -> Phase:
    """Return the phase that `marks` ended in; `start` when there are none."""
    return marks[-1][0] if marks else Phase.START


def enter(send: Send, began: float, lease: Lease | None = None) -> None:
    """Make this process a trial's.  Called once, by `memsweep.trial.child`.

    Args:
        send: Takes a kind and a body, and gives them to the parent.
        began: `time.monotonic()` of just before the fork; the clock is the whole system's.
        lease: What it has of the machine; None for all of it.
    """
    global _send, _lease
    _send, _lease = send, lease
    _marks.append((Phase.START, began))
