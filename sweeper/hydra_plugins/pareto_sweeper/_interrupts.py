"""Ctrl-C and SIGTERM end a study, but not in the middle of entering a trial."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Turns both signals into `KeyboardInterrupt`, at a time when it does no harm.

    Only the main thread hears signals; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self._is_held = self._is_pending = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._heard) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep an interrupt until the block has ended.

        Raises:
            KeyboardInterrupt: If there was one.
        """
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt

    def _heard(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002, Python passes both
        if self._is_held:
            self._is_pending = True
        else:
            raise KeyboardInterrupt
