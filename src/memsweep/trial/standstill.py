"""Does a group of processes stand still, and which of them began it?

A process that hangs lets the others wait for it, in a sum over all or at a meeting, where none of them
computes.  So a group stands still in two ways, once none has said for a while that it goes on:

none computes   all together have hardly used a core.  Whoever has come least far began it; among those that
                came as far, whoever has computed least since, for the others went on until they had to wait
some compute    and some have waited all the while: those that compute began it, in an endless loop, say.  A
                step in which one has more to do than the others looks like that too, so it counts only
                between steps, and only once it takes many times as long as the longest step did

On a device a process that waits may well use its core; there it is only the time limit that ends a trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from memsweep.trial import kernel

IDLE_SHARE = 0.03
"""Of one core: who uses less does not compute.  Two that wait for each other used below 0.002 together."""

STEPS_OF_PATIENCE = 4
"""How many times the longest step some may compute while others wait for them."""

_LEAST_SECONDS = 0.5  # between looks: the kernel counts in hundredths of a second


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
        self._steps = [0] * len(pids)
        self._longest_step_seconds = 0.0
        self._looked = clock()
        self._used = [0.0] * len(pids)
        self._said = [self._looked] * len(pids)  # when each last said that it goes on
        self._computed = [self._looked] * len(pids)  # when each was last seen to compute

    def goes_on(self, rank: int, *, has_stepped: bool = False) -> None:
        """Take note that a process has said so.

        Args:
            rank: Which one.
            has_stepped: It has come to the end of a step.
        """
        now = self._clock()
        if has_stepped:
            self._longest_step_seconds = max(self._longest_step_seconds, now - self._said[rank])
            self._steps[rank] += 1
        self._signs[rank] += 1
        self._at_last_sign[rank] = self._cpu_seconds(self._pids[rank])
        self._said[rank] = now

    def look(self) -> int | None:
        """Return the rank that the group stands still for; None while it goes on."""
        now = self._clock()
        passed = now - self._looked
        if passed < _LEAST_SECONDS:
            return None
        used = list(map(self._cpu_seconds, self._pids))
        for rank, (before, after) in enumerate(zip(self._used, used, strict=True)):
            if after - before > IDLE_SHARE * passed:
                self._computed[rank] = now
        self._looked, self._used = now, used
        silent = now - max(self._said)
        if min(silent, now - max(self._computed)) >= self._patience_seconds:
            since = [after - at for after, at in zip(used, self._at_last_sign, strict=True)]
            return min(range(len(self._pids)), key=lambda rank: (self._signs[rank], since[rank]))
        return self._waited_for(now, silent)

    def _waited_for(self, now: float, silent: float) -> int | None:
        """Return the rank that others wait for while it computes; None while that may be its work."""
        patience = max(self._patience_seconds, STEPS_OF_PATIENCE * self._longest_step_seconds)
        if not all(self._steps) or silent < patience:
            return None
        busy = [rank for rank, at in enumerate(self._computed) if now - at < patience]
        return min(busy, key=lambda rank: self._signs[rank]) if len(busy) < len(self._pids) else None
