"""A folder for the temporary files of each trial that runs, gone with it unless it ended in order.

What a killed trial leaves there must meet no other one.  A compiler writes its files where they are looked
for, and torch takes whatever lies there for a whole one.  Of trials that were killed while they compiled,
half a library broke the next that asked for the same code (`file too short`), half a precompiled header was
passed over ever after, at 10 s a trial, and half a probe of the processor may hide its vector instructions.
A room that was left in order is the next trial's, and at the end the next program's: one at a time has it,
and who is killed takes it along.  What was compiled there then took 9 s, and other code 17 s, instead of 58
(functions of two lines, on two busy cores).  All else that lay in it is removed.

Rooms end with the program.  Those of a program that was killed, the next one removes.

Source: seen by killing torch==2.13.0; _inductor/codecache.py _worker_compile_cpp, CppBuilder.build.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memsweep.record.outcome import CutShort, Measured, NonFinite, NotInForce, Reused
from memsweep.trial.variables import COMPILED, TEMPORARY

_PREFIX, _LOCK = "memsweep-rooms-", "lock"
_STORE = "memsweep-compiled-"  # and whose: what programs leave to the next ones
_MOST_KEPT, _MOST_KEPT_BYTES = 2, 1 << 30  # rooms, and each of them: one with torch's headers had 150 MiB
_KEPT = "torchinductor_"  # what torch's compiler made.  Source: torch==2.13.0 runtime/cache_dir_utils.py


IN_ORDER = (Measured, CutShort, Reused, NotInForce, NonFinite)
"""How a trial has ended that had nothing half done: between two steps."""


@dataclass(slots=True)
class Room:
    """Where one trial keeps its temporary files while it runs.

    Attributes:
        path: The folder.
        is_in_order: The trial has ended by itself, and had nothing half done; to be set by who knows.
    """

    path: Path
    is_in_order: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """The variables that have a process keep its temporary files here."""
        return {TEMPORARY: str(self.path), COMPILED: str(self.path / f"{_KEPT}cache")}


class Rooms:
    """The rooms of one program.  May be used from several threads; makes no folder before one is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._house: Path | None = None
        self._free: list[Path] = []
        self._end: Any = None  # removes the house

    def __enter__(self) -> Self:
        """Return the rooms."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the rooms."""
        self.close()

    @contextmanager
    def taken(self) -> Iterator[Room]:
        """Have a room to oneself for as long as the block lasts."""
        room = Room(self._take())
        try:
            yield room
        finally:
            if room.is_in_order and room.path.is_dir():
                _tidy(room.path)
                with self._lock:
                    self._free.append(room.path)
            else:
                shutil.rmtree(room.path, ignore_errors=True)

    def close(self) -> None:
        """Leave to the next program what was compiled, and remove all rooms."""
        with self._lock:
            if self._end is not None:
                _leave_to_others(self._free)
                self._end()
            self._house, self._end = None, None
            self._free.clear()

    def _take(self) -> Path:
        with self._lock:
            while self._free:
                room = self._free.pop()
                if room.is_dir():  # temporary folders are cleaned now and then, studies last for days
                    return room
            if self._house is None or not self._house.is_dir():
                if self._end is not None:
                    self._end()
                self._house, lock_fd = _built()
                self._end = weakref.finalize(self, _removed, self._house, lock_fd, os.getpid())
            return _left_by_others(self._house) or Path(tempfile.mkdtemp(prefix="", dir=self._house))


def move_in() -> None:
    """Let torch's compiler, where it was imported before this process had its room, keep to the room.

    Where it keeps precompiled headers it has settled while it was imported.
    """
    code: Any = sys.modules.get("torch._inductor.codecache")
    if code is not None:
        code._HEADER_DIR = os.path.join(code.default_cache_dir(), "precompiled_headers")  # noqa: PTH118
        code._HEADER_LOCK_DIR = os.path.join(code._HEADER_DIR, "locks")  # noqa: PTH118


def _store() -> Path | None:
    """Return where programs leave what was compiled; None where that is not this user's alone: it is run."""
    store = Path(tempfile.gettempdir()) / f"{_STORE}{os.getuid()}"
    try:
        store.mkdir(mode=0o700, exist_ok=True)
        found = store.lstat()
    except OSError:
        return None
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return store if is_own else None


def _left_by_others(house: Path) -> Path | None:
    """Return a room in which another program has compiled, and which nobody else has any more."""
    store = _store()
    if store is None:
        return None
    for place in range(_MOST_KEPT):
        room = house / f"left-{place}-{time.monotonic_ns()}"
        with suppress(OSError):  # there is none, or somebody else was quicker
            return (store / str(place)).rename(room)
    return None


def _leave_to_others(rooms: Sequence[Path]) -> None:
    store = _store()
    if store is None:
        return
    for room in rooms:
        n_bytes = sum(file.lstat().st_size for file in room.rglob("*"))
        if not 0 < n_bytes <= _MOST_KEPT_BYTES or not any(room.iterdir()):
            continue
        for place in range(_MOST_KEPT):
            with suppress(OSError):  # another program has left one there
                room.rename(store / str(place))
                break


def _built() -> tuple[Path, int]:
    """Return a folder for rooms, and the descriptor of its lock, which says that its owner is there."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        _remove_if_left(lock)
    Path(tempfile.gettempdir()).mkdir(parents=True, exist_ok=True)
    house = Path(tempfile.mkdtemp(prefix=_PREFIX))
    place = house / f"{_LOCK}-new"
    lock_fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    place.rename(house / _LOCK)  # not before it is locked: what is found unlocked is removed
    return house, lock_fd


def _remove_if_left(lock: Path) -> None:
    """Remove the rooms of a program that is there no more."""
    with suppress(OSError):  # somebody else's, or removed meanwhile
        lock_fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        finally:
            os.close(lock_fd)


def _removed(house: Path, lock_fd: int, owner: int) -> None:
    if os.getpid() == owner:  # a fork must not remove what it does not own
        shutil.rmtree(house, ignore_errors=True)
        os.close(lock_fd)


def _tidy(room: Path) -> None:
    for path in room.iterdir():
        if path.is_dir() and path.name.startswith(_KEPT):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
