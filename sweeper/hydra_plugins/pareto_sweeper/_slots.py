"""Calls side by side, each in a thread of its own; what becomes of them comes back to the caller's thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
"""What a call returns."""


class Slots(Generic[Answer]):
    """Calls that are under way.  Only the thread that starts them uses this."""

    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[tuple[int, Answer | BaseException]] = queue.SimpleQueue()
        self._threads: dict[int, threading.Thread] = {}

    @property
    def n_running(self) -> int:
        """How many calls were started and not yet waited for."""
        return len(self._threads)

    def start(self, number: int, call: Callable[[], Answer]) -> None:
        """Begin a call.

        Args:
            number: What it is known by, until it was waited for.
            call: The call.
        """

        def work() -> None:
            try:
                answer: Answer | BaseException = call()
            except BaseException as error:
                answer = error
            self._answers.put((number, answer))

        # A daemon: what hangs in the kernel must not keep the program from ending.
        thread = threading.Thread(target=work, name=f"slot of {number}", daemon=True)
        self._threads[number] = thread
        thread.start()

    def wait(self) -> tuple[int, Answer]:
        """Wait for the next call to end, and return its number with what it returned.

        Raises:
            BaseException: What the call raised.
        """
        number, answer = self._answers.get()
        self._threads.pop(number).join()
        if isinstance(answer, BaseException):
            raise answer
        return number, answer

    def join(self) -> None:
        """Wait for all calls, whatever becomes of them."""
        for thread in self._threads.values():
            thread.join()
        self._threads.clear()
        self._answers = queue.SimpleQueue()


def in_slots(
    n_slots: int, numbers: Sequence[int], call: Callable[[int], Answer], interrupt: Callable[[], object]
) -> list[Answer]:
    """Return what a call makes of each number, so many of them at a time.

    Args:
        n_slots: How many; with one, this thread does it all.
        numbers: The numbers.
        call: The call.
        interrupt: Makes all calls in other threads end soon.
    """
    if n_slots == 1:
        return [call(number) for number in numbers]
    slots: Slots[Answer] = Slots()
    answers: dict[int, Answer] = {}
    try:
        for number in numbers:
            if slots.n_running == n_slots:
                answers.update([slots.wait()])
            slots.start(number, partial(call, number))
        while slots.n_running:
            answers.update([slots.wait()])
    except BaseException:
        if slots.n_running:
            interrupt()
            slots.join()
        raise
    return [answers[number] for number in numbers]
