"""Tests in several processes at once: which of them stay together, and which run while nothing else does.

pytest-xdist starts the processes (`make test` asks for one a core) and hands out groups of tests in the order
in which they were found.  A group is a module, so that what a module's tests share is made once; the tests of
contract/ are grouped by trainer, for what they compare was trained with that trainer.

A test marked `alone` measures time, or relies on having it: it begins when every other process is between two
tests, and keeps them there until it has ended.  Those come last, when most processes have nothing left to do.
"""

from __future__ import annotations

import fcntl
import gc
import re
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memsweep.machine import n_cores
from tiny import DATA

FOLDER = Path(__file__).parent
MOST = 4
"""Processes that `-n auto` starts at most: each holds torch and the trainers, about a gibibyte."""

# Modules whose tests share little that is expensive to make: each test goes where there is room.
APART = {"memsweep/trial/test_run.py", "end_to_end/test_sweeps.py", "sweeper/test_kill.py"}

# As good as marked: what these wait for takes fractions of a second on a machine that does nothing else.
ALONE = {"sweeper/test_slots.py"}

_LOCKS = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


class Turns:
    """Lets tests of several processes run at once, but for those that must be alone.

    Whoever wants to be alone stands in the door until the room is empty, so that nobody else comes in.  They
    are locks of POSIX: the kernel frees them when their process ends, however it ends, and forks have none.
    """

    def __init__(self, folder: Path) -> None:
        self._door, self._room = ((folder / name).open("a+") for name in ("door", "room"))

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """Wait for a turn; it ends with the block."""
        fcntl.lockf(self._door, fcntl.LOCK_EX)
        fcntl.lockf(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.lockf(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.lockf(self._room, fcntl.LOCK_UN)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost: a test's time limit begins with its turn
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self.turn(alone=item.get_closest_marker("alone") is not None):
            return (yield)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Turns(Path(config.workerinput["turns"])), "turns")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process that is to be started where the locks of all of them are."""
    stash = node.config.stash
    if _LOCKS not in stash:
        stash[_LOCKS] = tempfile.TemporaryDirectory(prefix="turns-")
    node.workerinput["turns"] = stash[_LOCKS].name


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_LOCKS, None)) is not None:
        folder.cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return min(n_cores(), MOST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        """Takes no marker as pytest-xdist's own does: 3.8 adds it to names, and pytest 9.2 keeps them."""

        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if place(item) in ALONE:
            item.add_marker(pytest.mark.alone)
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


def pytest_collection_finish() -> None:
    """Keep what imports made out of garbage collection, which each trainer asks for: 0.2 s with torch."""
    gc.collect()
    gc.freeze()


def group_of(nodeid: str) -> str:
    """Return the name of the tests that a test stays together with; its own where it may go anywhere."""
    module, _, test = nodeid.partition("::")
    where = module.removeprefix("tests/")
    if where in APART:
        return nodeid
    trainers = [word for word in re.split(r"[][ -]", test) if word in DATA]
    return f"contract/ {trainers[0]}" if where.startswith("contract/") and trainers else module


def place(item: pytest.Item) -> str:
    """Return a test's module, as seen from tests/."""
    return item.path.relative_to(FOLDER).as_posix() if item.path.is_relative_to(FOLDER) else str(item.path)
