"""What a training has done until now: tokens through the model, tokens generated, time in generation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from memsweep.measure.gathers import gather_count
from memsweep.measure.generation import Generated, GenerationWatch
from memsweep.measure.tokens import TokenCount, TokenCounter


@dataclass(frozen=True, slots=True)
class Reading:
    """What a meter shows.

    Attributes:
        counted: What went through the model with gradients.
        generated: What was generated.
    """

    counted: TokenCount
    generated: Generated = field(default_factory=Generated)

    def __sub__(self, other: Reading) -> Reading:
        return Reading(self.counted - other.counted, self.generated - other.generated)


class Meter:
    """Counts what a trainer does, from its making on.

    Args:
        trainer: About to take its first step.
        generates: Whether it generates what it trains on.
    """

    def __init__(self, trainer: Any, *, generates: bool) -> None:
        # A compiled model is called in place of the one it was made from, whose hooks would be compiled too.
        is_compiled = isinstance(trainer.model_wrapped, torch._dynamo.OptimizedModule)
        self._tokens = TokenCounter(
            trainer.model_wrapped if is_compiled else trainer.model, pads_ends=pads_ends(trainer)
        )
        self._generation = GenerationWatch(trainer.model, gather_count(trainer)) if generates else None

    def now(self) -> Reading:
        """Return what was done until now; reads from the device, so at the edges of windows only."""
        generated = self._generation.now() if self._generation is not None else Generated()
        return Reading(self._tokens.now(), generated)

    def close(self) -> None:
        """Stop counting."""
        self._tokens.close()
        if self._generation is not None:
            self._generation.close()


def pads_ends(trainer: Any) -> bool:
    """Tell whether rows that are laid end to end get padding after the last of them."""
    return getattr(trainer.data_collator, "pad_to_multiple_of", None) is not None
