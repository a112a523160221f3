"""Does a group of processes stand still, and which of them began it?

A process that hangs lets the others wait for it, in a sum over all or at a meeting, where none of them
computes.  So a group stands still when none has said for a while that it goes on and all together have hardly
used a core.  Whoever has come least far began it; among those that came as far, whoever has computed least
since, for the others went on until they had to wait.

On a device a process that waits may well use its core; there it is only the time limit that ends a trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from memsweep.trial import kernel

IDLE_SHARE = 0.03
"""Of one core: a group that uses less does not compute.  Two that wait for each other used below 0.002."""


class Standstill:
    """Watches the processes of a group.

    Args:
        pids: The processes, by rank.
        patience_seconds: For how long a group may do nothing.
        cpu_seconds: Returns the time that a process has computed.
        clock: Returns seconds.
    """

    def __init__(
        self,
        pids: Sequence[int],
        patience_seconds: float,
        cpu_seconds: Callable[[int], float] = kernel.cpu_seconds,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pids, self._patience_seconds = pids, patience_seconds
        self._cpu_seconds, self._clock = cpu_seconds, clock
        self._signs = [0] * len(pids)
        self._at_last_sign = [0.0] * len(pids)
        self._lively = clock()
        self._looked = self._lively
        self._used = 0.0

    def goes_on(self, rank: int) -> None:
        """Take note that a process has said so."""
        self._signs[rank] += 1
        self._at_last_sign[rank] = self._cpu_seconds(self._pids[rank])
        self._lively = self._clock()

    def look(self) -> int | None:
        """Return the rank that the group stands still for; None while it goes on."""
        now = self._clock()
        used = sum(map(self._cpu_seconds, self._pids))
        if used - self._used > IDLE_SHARE * (now - self._looked):
            self._lively = now
        self._looked, self._used = now, used
        if now - self._lively < self._patience_seconds:
            return None
        since = [self._cpu_seconds(pid) - at for pid, at in zip(self._pids, self._at_last_sign, strict=True)]
        return min(range(len(self._pids)), key=lambda rank: (self._signs[rank], since[rank]))
