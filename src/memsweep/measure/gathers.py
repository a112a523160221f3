"""How often does DeepSpeed make weights whole that it holds in parts?

Counted where its context for that is entered, in whatever code.  Layers that are made whole one by one as a
pass goes through them are not: that is how such a model computes.
"""

from __future__ import annotations

import functools
import sys
from typing import Any


class GatherCount:
    """Counts, from now on.

    Args:
        context: DeepSpeed's class, `deepspeed.zero.GatheredParameters`.
    """

    def __init__(self, context: Any) -> None:
        self.n_gathers = 0
        self._context = context
        self._enter = self._context.__enter__

        @functools.wraps(self._enter)
        def counted(gathered: Any) -> Any:
            self.n_gathers += 1
            return self._enter(gathered)

        self._context.__enter__ = counted

    def close(self) -> None:
        """Stop counting."""
        self._context.__enter__ = self._enter


def gather_count(trainer: Any) -> GatherCount | None:
    """Return a count for a trainer whose weights DeepSpeed holds in parts; None for any other."""
    weights = trainer.model.parameters()
    if not any(hasattr(weight, "ds_tensor") for weight in weights):
        return None
    return GatherCount(sys.modules["deepspeed"].zero.GatheredParameters)


def is_whole(model: Any) -> bool:
    """Tell whether all of a model's weights are whole now; small ones that DeepSpeed never shares out are."""
    return not any(hasattr(weight, "ds_tensor") and not weight.numel() for weight in model.parameters())
