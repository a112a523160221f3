"""What one process of a trial has with the others: a place to meet, and a way to say that it goes on.

They meet by way of the process that started them, not through the libraries that train: it knows at any time
who has come and who has not, and a meeting means the same on every device.  A trial of one process is a team
of one, which meets itself at no cost.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from memsweep.measure.generation import Generated
from memsweep.measure.meter import Reading
from memsweep.measure.steady import Window
from memsweep.measure.tokens import TokenCount
from memsweep.trial.process import BEAT, FRAME, MEET


class Line:
    """Frames over a socket, as either end has them.

    Args:
        end: Of a pair of stream sockets.
    """

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._arrived = bytearray()

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Send one frame."""
        self.end.sendall(FRAME.pack(kind, len(body)) + body)

    def receive(self) -> bytes:
        """Wait for one frame and return its body.

        Raises:
            EOFError: If the other end has closed.
        """
        while True:
            for _, body in self._frames():
                return body
            self._read(1 << 16)

    def arrived(self) -> list[tuple[bytes, bytes]]:
        """Return what has come until now, without waiting.

        Raises:
            EOFError: If the other end has closed, and nothing is left to return.
        """
        try:
            while True:
                self._read(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return self._frames()
        except (EOFError, ConnectionResetError):
            left = self._frames()
            if not left:
                raise EOFError from None
            return left

    def _read(self, n_bytes: int, flags: int = 0) -> None:
        part = self.end.recv(n_bytes, flags)
        if not part:
            raise EOFError("the other end has closed")
        self._arrived += part

    def _frames(self) -> list[tuple[bytes, bytes]]:
        found = []
        while len(self._arrived) >= FRAME.size:
            kind, size = FRAME.unpack_from(self._arrived)
            end = FRAME.size + size
            if len(self._arrived) < end:
                break
            found.append((kind, bytes(self._arrived[FRAME.size : end])))
            del self._arrived[:end]
        return found


class Team:
    """The processes of a trial, seen from one of them.

    Attributes:
        rank: Which one this is, from 0.
        size: How many there are.

    Args:
        rank: See above.
        size: See above.
        line: To the process that started them; None for a team of one.
    """

    def __init__(self, rank: int = 0, size: int = 1, line: Line | None = None) -> None:
        self.rank, self.size = rank, size
        self._line = line

    def meet(self, value: Any) -> list[Any]:
        """Wait for all, each of whom brings a value, and return the values by rank."""
        if self._line is None:
            return [value]
        self._line.send(MEET, pickle.dumps(value))
        values: list[Any] = pickle.loads(self._line.receive())
        return values

    def go_on(self) -> None:
        """Say that this process goes on."""
        if self._line is not None:
            self._line.send(BEAT)

    def largest(self, measures: Mapping[str, float]) -> dict[str, float]:
        """Return each measure as it is in the process that has most of it."""
        return largest(self.meet(dict(measures)))

    def together(self, window: Window) -> Window:
        """Return what all did in the same time: every process gets the same, and decides alike."""
        return window if self.size == 1 else joined(self.meet(window))


_own = {"team": Team()}


def team() -> Team:
    """Return the team that this process is one of."""
    return _own["team"]


def join(mine: Team) -> None:
    """Let `team` return `mine`, for the rest of this process."""
    _own["team"] = mine


def largest(every: list[Mapping[str, float]]) -> dict[str, float]:
    """Return each measure as it is where there is most of it; what some lack is that of the others."""
    names = dict.fromkeys(name for measures in every for name in measures)
    return {name: max(measures[name] for measures in every if name in measures) for name in names}


def joined(windows: list[Window]) -> Window:
    """Return the windows of several processes as one: what they did adds up, the slowest has the time.

    Time in generation is the mean of theirs, as they generate at the same time; they call and
    gather alike.
    """
    done = [window.done for window in windows]
    counted = TokenCount(
        sum(one.counted.tokens for one in done),
        sum(one.counted.slots for one in done),
    )
    generated = Generated(
        sum(one.generated.tokens for one in done),
        fmean(one.generated.seconds for one in done),
        done[0].generated.calls,
        done[0].generated.gathers,
        done[0].generated.whole_calls,
    )
    return Window(max(window.seconds for window in windows), Reading(counted, generated))
