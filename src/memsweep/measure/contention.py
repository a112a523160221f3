"""Was this machine busy with something else while we measured?

Three accounts of the kernel's, over the timed passes:

    waiting for a core   time in which a thread of this process could have run and another ran in its place:
                         field 2 of /proc/self/task/*/schedstat.  What another program of this system takes.
    steal                time in which a (virtual) core was not run by its host: field 8 of /proc/stat.
    load, pressure       for the record only: they tell of all that runs, this process among it.

Both shares are of the time that there was: of wall clock times compute threads, and times usable cores.

Measured with torch 2.13.0+cpu on two virtual cores, as the share waited for a core:

    two threads, alone, large products    0.003 to 0.009
    two threads, alone, training          0.022 to 0.035   (many small operations: threads wake each other)
    two threads, one other process        0.25 to 0.26     (large products; throughput fell by 45 %)
    two threads, two others or more       0.39 to 0.55     (training)
    one thread of two cores, alone        0.000
    one thread of two cores, one other    0.001 to 0.012   (throughput fell by 3 %)
    two processes of one thread, alone    0.11 to 0.44     (the libraries' other threads wait too: no remark)

Source: Linux Documentation/scheduler/sched-stats.rst, Documentation/filesystems/proc.rst,
Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

PROC = Path("/proc")

WAITED_SHARE = 0.07
"""Above it the machine was busy: twice what was ever seen of a process that was alone."""

STOLEN_SHARE = 0.05
"""Above it the host was busy: twice what was ever seen otherwise, 0.024 over a second, 0.008 over eight."""

_NANOSECOND = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Busyness:
    """What else went on while it was measured.  None where the system does not say.

    Attributes:
        seconds: Wall clock from `begin` to `end`.
        waited_share: Time that threads waited for a core, of wall clock times compute threads.
        stolen_share: Time that the host withheld, of wall clock times usable cores.
        load_average: Threads that ran or wanted to, over the last minute; this process's among them.
        pressure_share: Time in which any thread of the machine waited for a core, of wall clock.
        threads_fit: Whether there was a core for each compute thread.  Otherwise they wait for each other,
            which is nobody else's doing.
    """

    seconds: float
    waited_share: float | None
    stolen_share: float | None
    load_average: float | None
    pressure_share: float | None
    threads_fit: bool = True

    @property
    def remark(self) -> str | None:
        """The sentence for a reader, None when the machine did nothing else."""
        found = []
        if self.threads_fit and self.waited_share is not None and self.waited_share > WAITED_SHARE:
            found.append(f"threads waited for a core {self.waited_share:.0%} of the time")
        if self.stolen_share is not None and self.stolen_share > STOLEN_SHARE:
            found.append(f"the host withheld the cores {self.stolen_share:.0%} of the time")
        if not found:
            return None
        return f"the machine was busy with something else: {', '.join(found)}; the throughput is too low"

    def facts(self) -> dict[str, Any]:
        """Return what is known, JSON-ready."""
        known = {
            "seconds": self.seconds,
            "waited_share": self.waited_share,
            "stolen_share": self.stolen_share,
            "load_average": self.load_average,
            "pressure_share": self.pressure_share,
        }
        return {name: round(value, 4) for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Contention:
    """The kernel's accounts at the begin of what is measured.  Made by `begin`.

    Attributes:
        n_threads: Compute threads of this process.
        n_processes: Processes of the trial, which share the cores.
        cores: Numbers of the cores that it may use.
        proc: Where the kernel's files are.
        clock: Returns seconds.
        began: The clock at the begin.
        waited: Thread to the nanoseconds that it had waited for a core; None where the kernel does not say.
        stolen_seconds: What the host had withheld of the cores; None where the kernel does not say.
        stalled_seconds: What any thread of the machine had waited; None where the kernel does not say.
    """

    n_threads: int
    n_processes: int
    cores: frozenset[int]
    proc: Path
    clock: Callable[[], float]
    began: float
    waited: Mapping[str, int] | None
    stolen_seconds: float | None
    stalled_seconds: float | None

    @classmethod
    def begin(
        cls,
        n_threads: int,
        cores: frozenset[int] | None = None,
        proc: Path = PROC,
        clock: Callable[[], float] = time.perf_counter,
        n_processes: int = 1,
    ) -> Self:
        """Begin to look.

        Args:
            n_threads: Compute threads of this process, as `torch.get_num_threads()` says.
            cores: Numbers of the cores that count for steal; None means those this process may use.
            proc: Where the kernel's files are.
            clock: Returns seconds.
            n_processes: Processes of the trial, each with so many threads.
        """
        if cores is None:
            cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()
        return cls(
            n_threads=max(1, n_threads),
            n_processes=n_processes,
            cores=cores,
            proc=proc,
            clock=clock,
            began=clock(),
            waited=_waited(proc),
            stolen_seconds=_stolen_seconds(proc, cores),
            stalled_seconds=_stalled_seconds(proc),
        )

    def end(self) -> Busyness:
        """Return what went on since the begin."""
        seconds = self.clock() - self.began
        stolen = _stolen_seconds(self.proc, self.cores)
        stalled = _stalled_seconds(self.proc)
        return Busyness(
            seconds=seconds,
            waited_share=_share(self._waited_seconds(), seconds * self.n_threads),
            stolen_share=_share(_less(stolen, self.stolen_seconds), seconds * len(self.cores)),
            load_average=_load_average(self.proc),
            pressure_share=_share(_less(stalled, self.stalled_seconds), seconds),
            # Processes that talk to each other have threads for that beside those that compute.
            threads_fit=not self.cores or (self.n_processes == 1 and self.n_threads <= len(self.cores)),
        )

    def _waited_seconds(self) -> float | None:
        """Return what the threads that are here now waited.

        Those that ended took their account with them.  One that began since counts whole; so does one that
        has waited less than before, which is a new thread under an old number.
        """
        now = _waited(self.proc)
        if now is None or self.waited is None:
            return None
        before = {thread: was for thread, was in self.waited.items() if was <= now.get(thread, -1)}
        return sum(has - before.get(thread, 0) for thread, has in now.items()) * _NANOSECOND


def _waited(proc: Path) -> dict[str, int] | None:
    """Return thread to the nanoseconds that it has waited for a core, None where no account is kept."""
    try:
        threads = os.listdir(proc / "self" / "task")  # noqa: PTH208 - names are wanted, not paths
    except OSError:
        return None
    found = {}
    for thread in threads:
        try:
            text = (proc / "self" / "task" / thread / "schedstat").read_text(encoding="ascii")
            found[thread] = int(text.split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it ended in between
    return found or None


def _stolen_seconds(proc: Path, cores: frozenset[int]) -> float | None:
    """Return the time that the host has withheld of the cores, None where the kernel does not say."""
    try:
        lines = (proc / "stat").read_text(encoding="ascii", errors="replace").splitlines()
        wanted = {f"cpu{core}" for core in cores}
        ticks = [int(fields[8]) for fields in map(str.split, lines) if fields and fields[0] in wanted]
        return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None
    except (OSError, ValueError, IndexError):
        return None


def _load_average(proc: Path) -> float | None:
    try:
        return float((proc / "loadavg").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _stalled_seconds(proc: Path) -> float | None:
    """Return how long any thread has waited for a core: `some avg10=0.0 ... total=<microseconds>`."""
    try:
        line = (proc / "pressure" / "cpu").read_text(encoding="ascii").splitlines()[0]
        return int(line.rpartition("total=")[2]) * 1e-6
    except (OSError, ValueError, IndexError):
        return None


def _less(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else max(0.0, now - before)


def _share(part: float | None, whole: float) -> float | None:
    return None if part is None or whole <= 0 else part / whole
