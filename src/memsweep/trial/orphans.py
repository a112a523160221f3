"""What trials leave behind, in the process that takes it in: whose it was, and its end.

Every trial takes in its own orphans while it lives.  So whatever is a child of the template and no trial was
left by a trial that has ended: by the one whose end has just been noticed, or, where several end at once, by
one whose turn is next.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Container
from contextlib import suppress

from memsweep.trial import kernel
from memsweep.trial.variables import TRIAL

_LOOKS = 2
"""At the children, that must agree that there is no orphan.

The kernel's list may leave out a child while another one ends, so one empty list proves nothing.
Source: Linux Documentation/filesystems/proc.rst, /proc/<pid>/task/<tid>/children.
"""


class Orphans:
    """The orphans of one template's trials.

    Args:
        patience_seconds: For what was killed to be gone; longer only while the kernel cannot end it.
    """

    def __init__(self, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._counts: Counter[int] = Counter()
        self._survivors: set[int] = set()

    def end(self, trials: Container[int], ended: int | None = None) -> list[int]:
        """End what is left behind, and what that leaves behind.

        Args:
            trials: The processes of trials whose end was not noticed yet.
            ended: That of the trial that has just ended; None when all have.

        Returns:
            What is not gone yet, of this call's and of earlier ones'.
        """
        known: set[int] = set()
        deadline = time.monotonic() + self._patience_seconds
        n_looks = 0
        while n_looks < _LOOKS:
            found = [pid for pid in kernel.children(os.getpid()) if pid not in trials]
            orphans = [pid for pid in found if pid not in self._survivors]
            n_looks = 0 if orphans else n_looks + 1
            for pid in orphans:
                if pid not in known:
                    known.add(pid)
                    self._counts[trial_of(pid, trials, ended or 0)] += 1
                    kernel.kill(pid)
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if orphans and time.monotonic() > deadline:
                self._survivors.update(orphans)
            elif orphans:
                time.sleep(0.001)
        return self._left()

    def _left(self) -> list[int]:
        """Return those whose end was not waited for, and forget those that are gone by now."""
        for pid in tuple(self._survivors):
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if not kernel.is_there(pid):
                self._survivors.discard(pid)
        return sorted(self._survivors)

    def taken_count(self, trial: int) -> int:
        """Return how many orphans of a trial were ended, and forget it: its number may come again."""
        return self._counts.pop(trial, 0)


def trial_of(orphan: int, others: Container[int], ended: int) -> int:
    """Return the trial that an orphan belongs to: one of `others` whose end is noticed next, or `ended`.

    It is known by its session, which a trial leads, or by the environment of its program.  One that has left
    both behind, a mere fork in a session of its own, is taken for that of the trial that has ended.
    """
    with suppress(OSError):
        if (leader := os.getsid(orphan)) in others:
            return leader
    named = kernel.started_with(orphan, TRIAL) or ""
    return int(named) if named.isdigit() and int(named) in others else ended
