"""How many tokens does a trainer really train on?

A hook before the model's forward sees every batch of every trainer, after packing, truncation and generation;
only while gradients are enabled, so reference and generation forwards do not count, and recomputation in the
backward pass does not fire it again.  What is a token and what is padding comes from attention masks and
position ids, never from comparing ids with the padding token's, which may be the end-of-text token's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Positions that went through the model with gradients.

    Attributes:
        tokens: Those that hold a token.
        slots: All of them, padding too.
    """

    tokens: int
    slots: int

    def __sub__(self, other: TokenCount) -> TokenCount:
        return TokenCount(self.tokens - other.tokens, self.slots - other.slots)


def count(batch: Mapping[str, Any], *, pads_ends: bool = True) -> tuple[torch.Tensor, int]:
    """Return the tokens of a batch, as a scalar on its device, and its slots.

    Args:
        batch: What the model is called with: `input_ids` (n_rows, n_slots), and `attention_mask` of the same
            shape, or `position_ids` when rows are laid end to end without padding between them.
        pads_ends: Rows laid end to end may have padding after the last of them.
    """
    ids = batch["input_ids"]
    mask = batch.get("attention_mask")
    if isinstance(mask, torch.Tensor) and mask.shape == ids.shape:
        return (mask != 0).sum(), ids.numel()
    positions = batch.get("position_ids")
    if pads_ends and isinstance(positions, torch.Tensor) and positions.shape == ids.shape:
        # Positions restart at 0 in each sequence; padding is a run of zeros at the row's end.  A sequence of
        # one token at the very end would look like padding: it is counted as such.
        places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        return torch.where(positions != 0, places, 0).amax(dim=1).sum(), ids.numel()
    return torch.tensor(ids.numel(), device=ids.device), ids.numel()


class TokenCounter:
    """Counts what a model is trained on, from now on.

    Nothing is read back from the device until `now` is asked.

    Args:
        model: What is trained.
        pads_ends: As for `count`.
    """

    def __init__(self, model: torch.nn.Module, *, pads_ends: bool = True) -> None:
        self._pads_ends = pads_ends
        self._counted: list[torch.Tensor] = []
        self._tokens = 0
        self._slots = 0
        self._handle = model.register_forward_pre_hook(self._before_forward, with_kwargs=True)

    def now(self) -> TokenCount:
        """Return what was counted until now."""
        if self._counted:
            self._tokens += int(torch.stack(self._counted).sum())
            self._counted = []
        return TokenCount(self._tokens, self._slots)

    def close(self) -> None:
        """Stop counting."""
        self._handle.remove()

    def _before_forward(self, _: torch.nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not torch.is_grad_enabled():
            return
        batch = {"input_ids": positional[0], **named} if positional else named
        if not isinstance(batch.get("input_ids"), torch.Tensor):
            return
        tokens, slots = count(batch, pads_ends=self._pads_ends)
        self._counted.append(tokens)
        self._slots += slots
