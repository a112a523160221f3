"""Trainings in other processes that stop at points of their own until told to go on: both ends of it.

So that processes can be compared on a machine whose own speed wanders within minutes: they train in turn, and
what wanders does so for all of them alike.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.5  # how often both ends look whether the other is still there


@dataclass(frozen=True, slots=True)
class Pauses:
    """Where a training stops until it is told to go on, on named pipes.

    Attributes:
        folder: Where the pipes are.
        n_pauses: How many there are.
    """

    folder: Path
    n_pauses: int

    @property
    def stopped(self) -> Path:
        """Written to when the training has stopped."""
        return self.folder / "stopped"

    @property
    def go_on(self) -> Path:
        """Read from until the training may go on."""
        return self.folder / "go_on"

    @property
    def over(self) -> Path:
        """There when nobody waits for the training to stop any more."""
        return self.folder / "over"

    def make(self) -> None:
        """Make the pipes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for pipe in (self.stopped, self.go_on):
            os.mkfifo(pipe)

    def wait(self) -> None:
        """Say that the training has stopped, and wait until it may go on or nobody listens any more."""
        with _opened(self.stopped) as stopped, _opened(self.go_on) as go_on:
            os.write(stopped, b".")
            while not self.over.exists():
                if _is_readable(go_on):
                    os.read(go_on, 1)
                    return

    def stops(self, training: Future[Any]) -> Iterator[None]:
        """Yield whenever the training has stopped, and let it go on after.

        Raises:
            RuntimeError: If it ended before it stopped as often as it was to.
        """
        with _opened(self.stopped) as stopped, _opened(self.go_on) as go_on:
            for number in range(self.n_pauses):
                while not _is_readable(stopped):
                    if training.done():
                        training.result()
                        raise RuntimeError(f"the training ended before its stop {number + 1}")
                os.read(stopped, 1)
                yield
                os.write(go_on, b".")

    def end(self) -> None:
        """Let the training go on to its end, whether it has stopped or not."""
        self.over.touch()


def in_turn(trainings: Sequence[Callable[[Pauses], Any]], folder: Path, n_pauses: int) -> list[Any]:
    """Let trainings go on one at a time, from one stop to the next, in random order; return what each does.

    Args:
        trainings: Each runs one in another process to its end, and is called in a thread of its own.
        folder: Where the pipes are to be.
        n_pauses: How often each stops.  Up to its first stop, and from its last to its end, it is alone too.
    """
    order = random.Random(0)
    with ThreadPoolExecutor(max_workers=len(trainings)) as threads, ExitStack() as ends:
        running: list[tuple[Future[Any], Iterator[None]]] = []
        for number, train in enumerate(trainings):
            pauses = Pauses(folder / str(number), n_pauses)
            pauses.make()
            ends.callback(pauses.end)
            training = threads.submit(train, pauses)
            running.append((training, pauses.stops(training)))
            next(running[-1][1])
        for _ in range(n_pauses - 1):
            for _, stops in order.sample(running, len(running)):
                next(stops)
        for training, stops in order.sample(running, len(running)):
            next(stops, None)
            training.result()
        return [training.result() for training, _ in running]


@contextlib.contextmanager
def _opened(pipe: Path) -> Iterator[int]:
    """Open a pipe for both, so that neither opening nor writing waits for the other end."""
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], LOOK_SECONDS)[0])
