"""Who has which part of the machine: each part is had by one trial at a time, whoever comes first.

A trial of several processes takes as many slots' parts as give each process one of its own: a device, or a
core where processes compute on those.  It waits until so many are free at once, and whoever comes after it
waits behind it, so that small trials do not keep a large one waiting for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from memsweep.trial import kernel
from memsweep.trial.lease import Lease, together

_POLL_SECONDS = 0.1  # between looks at processes that cannot be waited for


@dataclass(slots=True)
class Holding:
    """A lease while a trial has it.

    Attributes:
        lease: The lease; None means all of the machine.
        survivors: Processes of the trial that were killed and are not gone yet: they hold their memory.
    """

    lease: Lease | None = None
    survivors: Sequence[int] = ()


class Leases:
    """The leases of a launcher, had by one trial each; whoever comes when too few are left waits.

    Attributes:
        shared: All of them.

    Args:
        shared: All of them.
        is_there: Tells whether a process still is.
    """

    def __init__(self, shared: Sequence[Lease], is_there: Callable[[int], bool] = kernel.is_there) -> None:
        self.shared = tuple(shared)
        self._free: list[tuple[Lease, tuple[int, ...]]] = [(lease, ()) for lease in shared]
        self._queue: list[object] = []
        self._changed = threading.Condition()
        self._is_interrupted = False
        self._is_there = is_there

    @contextmanager
    def taken(self, n_processes: int = 1) -> Iterator[Holding]:
        """Have a lease for as long as the block lasts, and until the survivors that it names are gone.

        Waits for what nobody uses any more.  What is had is all there is where that is too little for so
        many processes: on cores they then share them, on devices `trial_environment` refuses them.

        Args:
            n_processes: Of the trial.

        Raises:
            KeyboardInterrupt: After `interrupt`.
        """
        parts = self._take(self.n_needed(n_processes))
        holding = Holding(together(parts))
        try:
            yield holding
        finally:
            with self._changed:
                self._free += [(part, tuple(holding.survivors)) for part in parts]
                self._changed.notify_all()

    def n_needed(self, n_processes: int) -> int:
        """Return how many slots' parts give each of so many processes a device, or a core, of its own."""
        each = len(self.shared[0].devices) or len(self.shared[0].cores)
        return min(len(self.shared), -(-n_processes // each))

    def _take(self, n_parts: int) -> list[Lease]:
        turn = object()
        with self._changed:
            self._queue.append(turn)
            try:
                while not self._is_interrupted:
                    free = [own for own in self._free if not any(map(self._is_there, own[1]))]
                    if self._queue[0] is turn and len(free) >= n_parts:
                        for own in free[:n_parts]:
                            self._free.remove(own)
                        return [lease for lease, _ in free[:n_parts]]
                    is_haunted = self._queue[0] is turn and len(free) < len(self._free)
                    self._changed.wait(_POLL_SECONDS if is_haunted else None)
            finally:
                self._queue.remove(turn)
                self._changed.notify_all()
        raise KeyboardInterrupt

    def interrupt(self) -> None:
        """Have everybody who waits for a lease, now or later, raise KeyboardInterrupt."""
        with self._changed:
            self._is_interrupted = True
            self._changed.notify_all()
