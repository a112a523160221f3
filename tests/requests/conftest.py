"""Two warm processes that answer requests, side by side and ahead of the tests that look at the answers."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from answering import Answer, Answering
from refused import Request, left_behind, tree

N_PROCESSES = 2


class Desk:
    """Answers requests, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._free: queue.SimpleQueue[Answering] = queue.SimpleQueue()
        self._all = [Answering() for _ in range(N_PROCESSES)]
        for one in self._all:
            self._free.put(one)
        self._threads = ThreadPoolExecutor(N_PROCESSES)
        self._asked: dict[int, Future[tuple[Answer, list[str]]]] = {}

    def close(self) -> None:
        """Give up what nobody waits for, and end the processes."""
        self._threads.shutdown(cancel_futures=True)
        for one in self._all:
            one.__exit__()

    def ask(self, request: Request) -> Future[tuple[Answer, list[str]]]:
        """Have a request answered, if it is not already; return the answer to be, and what it left behind."""
        if id(request) not in self._asked:
            folder = self._folder / str(len(self._asked))
            self._asked[id(request)] = self._threads.submit(self._answer, request, folder)
        return self._asked[id(request)]

    def _answer(self, request: Request, folder: Path) -> tuple[Answer, list[str]]:
        request.prepare(folder)
        before = tree(folder)
        one = self._free.get()
        environment = {
            "HOME": str(folder),
            "MEMSWEEP_CACHE": str(self._folder / "cache"),
            **request.environment,
        }
        try:
            answer = one.answer(request.program, request.typed, folder, environment)
        finally:
            self._free.put(one)
        for name in request.modes:
            (folder / "work" / name).chmod(0o755)
        return answer, left_behind(before, tree(folder))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Answers requests."""
    desk = Desk(tmp_path_factory.mktemp("requests"))
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def answered(desk: Desk, request: pytest.FixtureRequest) -> Callable[[Request], tuple[Answer, list[str]]]:
    """A function that returns the answer to a request; those of all tests of the module are begun at once."""
    for item in request.session.items:
        asked = item.callspec.params.get("asked") if hasattr(item, "callspec") else None
        if isinstance(asked, Request) and item.path == request.path:
            desk.ask(asked)
    return lambda asked: desk.ask(asked).result()
