"""The processes of one trial: started from the trial's own, watched by it, ended with it.

    controller --> template --fork--> the trial's process --fork--> rank 0, rank 1, ...
                                          |  sleeps, hears who goes on, lets them meet,
                                          `- ends all when one has failed or none goes on

The trial's process does not train, so it can tell at any time what became of those that do, whatever they are
waiting for.  All are of its session and its group, and die with it: limits, Ctrl-C and cleaning are those of
every trial.  Ranks are forks of a process that has imported everything, as trials are.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from memsweep.errors import TrialError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured, Phase
from memsweep.record.trial import TrialRecord
from memsweep.trial import child, kernel, process
from memsweep.trial.standstill import Standstill
from memsweep.trial.team import Line, Team, join, team

_LOOK_SECONDS = 1.0  # between looks at whether anybody computes: two small files a process
_GRACE_SECONDS = 1.0  # from the first failure to the end of the others: who failed first says so by then

RunRank = Callable[[int], TrialRecord]


@dataclass(slots=True)
class Rank:
    """One process of a trial, as the one that started it sees it.

    Attributes:
        number: Which one, from 0.
        pid: Its process.
        line: To it.
        phase: Where in its life it is, or was.
        record: What it says became of the trial; None until it says so.
        status: Wait status; None until it has ended.
        ended_seconds: `time.monotonic()` of its record or, without one, of its end.
        was_killed: It was ended from here.
        brought: What it has brought to a meeting that not all have come to yet.
    """

    number: int
    pid: int
    line: Line
    phase: Phase = Phase.START
    record: TrialRecord | None = None
    status: int | None = None
    ended_seconds: float = float("inf")
    was_killed: bool = False
    brought: bytes | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the trial is over because of it: it measured nothing, or ended without a word."""
        if self.record is not None:
            return not isinstance(self.record.outcome, Measured)
        return self.status is not None


class Group:
    """Runs the processes of one trial to their end.

    Attributes:
        ranks: The processes.
        stands_still: The rank that the group stood still for; None when it did not.

    Args:
        size: How many processes.
        folder: Of the trial.
        patience_seconds: For how long none of them need compute.
    """

    def __init__(self, size: int, folder: TrialFolder, patience_seconds: float) -> None:
        self.ranks: list[Rank] = []
        self.stands_still: int | None = None
        self._size, self._folder, self._patience_seconds = size, folder, patience_seconds
        self._deadline = float("inf")

    def run(self, function: RunRank, started: Callable[[], object] = lambda: None) -> None:
        """Run `function` in each process with its rank, and return when all have ended.

        Args:
            function: What each of them does.
            started: Called here once all have been started: what may have threads follows all forks.

        Raises:
            TrialError: If this process has threads, so that a fork of it would not be sound.
        """
        threads = kernel.thread_names()
        if len(threads) > 1:
            raise TrialError(
                "several processes are forks of a trial's own, which is not sound here: imports have started "
                f"{len(threads) - 1} thread(s), {', '.join(sorted(threads)[:8])}"
            )
        for number in range(self._size):
            self._start(number, function)
        self._still = Standstill([rank.pid for rank in self.ranks], self._patience_seconds)
        try:
            started()
            self._watch()
        finally:
            self._end_all()

    def _start(self, number: int, function: RunRank) -> None:
        ours, theirs = socket.socketpair()
        leader = os.getpid()
        pid = os.fork()
        if pid == 0:
            for other in (ours, *(rank.line.end for rank in self.ranks)):
                other.close()
            self._live(number, Line(theirs), leader, function)
        theirs.close()
        self.ranks.append(Rank(number, pid, Line(ours)))

    def _live(self, number: int, line: Line, leader: int, function: RunRank) -> NoReturn:
        """Live a rank's life.  Never returns and never raises."""
        code = 1
        try:
            kernel.signal_on_parent_death(signal.SIGKILL)
            if os.getppid() != leader:  # it ended before the line above
                os._exit(1)
            folder = self._folder.rank(number)
            if number:
                folder.path.mkdir(parents=True, exist_ok=True)
                child.redirect(str(folder.stdout), str(folder.stderr))
            process.become_one_of_several(line.send)
            join(Team(number, self._size, line))
            record = function(number)
            if isinstance(record.outcome, Measured):
                team().meet(None)  # what one holds, a store for all for instance, the others may still need
            line.send(process.RESULT, pickle.dumps(record))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
            for rank in self.ranks:
                end = os.pidfd_open(rank.pid)
                stack.callback(os.close, end)
                selector.register(rank.line.end, selectors.EVENT_READ, (rank, self._hear))
                selector.register(end, selectors.EVENT_READ, (rank, self._bury))
            while any(rank.status is None for rank in self.ranks):
                wait = min(_LOOK_SECONDS, max(0.0, self._deadline - time.monotonic()))
                for key, _ in selector.select(wait):
                    rank, take = key.data
                    if not take(rank):
                        selector.unregister(key.fileobj)
                self._let_meet()
                self._judge()

    def _hear(self, rank: Rank) -> bool:
        """Take in what a rank says; return False when it will say no more."""
        try:
            frames = rank.line.arrived()
        except EOFError:
            return False
        for kind, body in frames:
            self._still.goes_on(rank.number, has_stepped=kind == process.BEAT)
            if kind == process.PHASE:
                rank.phase = Phase(body.decode().partition(" ")[0])
                if rank.number == 0:
                    process.report_phase(rank.phase)
            elif kind == process.MEET:
                rank.brought = body
            elif kind == process.RESULT:
                rank.record, rank.ended_seconds = pickle.loads(body), time.monotonic()
        return True

    def _bury(self, rank: Rank) -> bool:
        """Take note of a rank's end."""
        self._hear(rank)  # what it said before
        if rank.status is None:
            _, rank.status = os.waitpid(rank.pid, 0)
            rank.ended_seconds = min(rank.ended_seconds, time.monotonic())
        return False

    def _let_meet(self) -> None:
        if any(rank.brought is None for rank in self.ranks):
            return
        values = [pickle.loads(rank.brought or b"") for rank in self.ranks]
        for rank in self.ranks:
            rank.brought = None
            with contextlib.suppress(OSError):  # it has ended meanwhile, and that will be noticed
                rank.line.send(process.MEET, pickle.dumps(values))

    def _judge(self) -> None:
        """End the others some time after one has failed, and all when they stand still."""
        now = time.monotonic()
        if any(rank.has_failed for rank in self.ranks):
            self._deadline = min(self._deadline, now + _GRACE_SECONDS)
        elif self.stands_still is None:
            self.stands_still = self._still.look()
            if self.stands_still is not None:
                self._deadline = now
        if now >= self._deadline:
            self._kill()
            self._deadline = float("inf")

    def _kill(self) -> None:
        for rank in self.ranks:
            if rank.status is None:
                rank.was_killed = True
                kernel.kill(rank.pid)

    def _end_all(self) -> None:
        """See to it that no rank is left, nor what one has started."""
        self._kill()
        for rank in self.ranks:
            self._bury(rank)
            rank.line.end.close()
        for pid in kernel.children(os.getpid()):
            kernel.kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
