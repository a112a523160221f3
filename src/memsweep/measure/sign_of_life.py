"""A word at the end of each step that training goes on, for who watches several processes of one trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback


class SignOfLife(TrainerCallback):  # type: ignore[misc]  # transformers is not followed by the type checker
    """Says so.

    Args:
        say: Called after each optimizer step.
    """

    def __init__(self, say: Callable[[], None]) -> None:
        self._say = say

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Say that a step has ended."""
        self._say()
