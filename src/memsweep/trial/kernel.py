"""What a trial's supervision asks of Linux: who dies with whom, who is whose child, who ran out of memory.

Everything here is one system call or one small file of /proc; nothing keeps state.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# Source: linux/prctl.h.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def signal_on_parent_death(number: int) -> None:
    """Have the kernel send this process `number` when the thread that created it ends.

    The thread, not the process: a receiver checks `os.getppid()` before it believes the parent dead.
    Survives `execve`, not `fork`.  Source: man 2 PR_SET_PDEATHSIG.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def become_subreaper() -> None:
    """Make orphaned descendants of this process its children, instead of init's.

    Not inherited by `fork`.  Source: man 2 PR_SET_CHILD_SUBREAPER.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def volunteer_for_the_oom_killer() -> None:
    """Have the kernel end this process before others when the host runs out of memory.

    A trial may die of it and be recorded; the controller may not.
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def thread_names() -> list[str]:
    """Return the names of this process's threads, Python's and others'."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            names.append((task / "comm").read_text(encoding="utf-8").strip())
    return names


def open_devices(prefix: str) -> list[str]:
    """Return the device files beginning with `prefix` that this process holds open."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = str(entry.readlink())
            if target.startswith(prefix):
                found.add(target)
    return sorted(found)


def children(pid: int) -> list[int]:
    """Return the processes whose parent is `pid`, zombies among them."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        found = (tasks / str(pid) / "children").read_text(encoding="ascii").split()
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [other for other, parent in _parents() if parent == pid]
    with suppress(OSError):  # a thread, or all of it, has ended meanwhile
        for task in tasks.iterdir():  # what other threads have started stands with them
            if task.name != str(pid):
                found += (task / "children").read_text(encoding="ascii").split()
    return [int(word) for word in found]


def is_there(pid: int) -> bool:
    """Tell whether a process still holds anything: one that has ended and is not waited for yet does not."""
    return _state(pid) not in (None, "Z", "X")


def is_stopped(pid: int) -> bool:
    """Tell whether a signal, SIGSTOP say, has stopped a process until SIGCONT comes."""
    return _state(pid) == "T"


def cpu_seconds(pid: int) -> float:
    """Return the time that a process and its descendants have computed; 0 once it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    # Fields 14 to 17, its own and that of children it has waited for, counted from the third, the state.
    fields = stat.rpartition(")")[2].split()
    own = sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, children(pid)))


def anonymous_bytes(pid: int) -> int | None:
    """Return the memory of a process that no file backs: heaps and pages written to; None once it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, rest = line.partition(":")
            if name == "RssAnon":
                return int(rest.split()[0]) << 10
    return None


def started_with(pid: int, variable: str) -> str | None:
    """Return what `variable` was when a process's program was started; None where that cannot be had."""
    start = f"{variable}=".encode()
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(start):
                return os.fsdecode(entry[len(start) :])
    return None


def processes_with(variable: str, value: str) -> list[int]:
    """Return the processes that were started with an environment holding `variable=value`."""
    wanted = f"{variable}={value}".encode()
    found = []
    for pid in _pids():
        with suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def initial_environment() -> dict[str, str]:
    """Return the environment that this process's program was started with."""
    data = Path("/proc/self/environ").read_bytes()
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def kill(pid: int) -> None:
    """End a process and the group that it leads, if they are still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_all_with(variable: str, value: str, timeout_seconds: float = 2.0) -> tuple[int, ...]:
    """End every process started with `variable=value`, and wait until they are gone.

    Returns:
        Those that are not gone by then.
    """
    deadline = time.monotonic() + timeout_seconds
    while pids := [pid for pid in processes_with(variable, value) if pid != os.getpid()]:
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return tuple(pids)
        time.sleep(0.005)
    return ()


def n_oom_kills() -> int:
    """Return how many processes the kernel has ended for want of memory, host and control group together.

    Only differences mean something.
    """
    return _counter(Path("/proc/vmstat"), "oom_kill") + sum(
        _counter(file, "oom_kill") for file in _memory_events()
    )


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _state(pid: int) -> str | None:
    """Return the letter that the kernel has for what a process does; None once it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[0]


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208, names are enough


def _parents() -> Iterator[tuple[int, int]]:
    for pid in _pids():
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            # The second field is the name in parentheses, and may hold spaces and parentheses itself.
            yield pid, int(stat.rpartition(")")[2].split()[1])


def _memory_events() -> Iterator[Path]:
    """Yield the files that count a control group's out-of-memory kills (version 2, then version 1)."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield Path("/sys/fs/cgroup") / path.lstrip("/") / "memory.events"
        elif "memory" in controllers.split(","):
            yield Path("/sys/fs/cgroup/memory") / path.lstrip("/") / "memory.oom_control"


def _counter(file: Path, name: str) -> int:
    try:
        text = file.read_text(encoding="ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
