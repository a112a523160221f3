"""Selective checkpointing keeps what attention made: its kernel runs once a layer, all else twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from seen import N_LAYERS, N_STEPS
from walk import Walk

KERNEL = "_scaled_dot_product_flash_attention_for_cpu"


@contextmanager
def counted_kernel() -> Iterator[list[int]]:
    """Count runs of the attention kernel itself: below what a dispatch mode answers from what it kept.

    The kernel that is registered for the processor is replaced by the same mathematics.
    """
    runs: list[int] = []

    def kernel(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        attn_mask: torch.Tensor | None = None,
        scale: float | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        runs.append(1)
        weights = query.float() @ key.float().transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
        if is_causal:
            weights = weights + torch.full(weights.shape[-2:], float("-inf")).triu(1)
        if attn_mask is not None:
            weights = weights + attn_mask
        return (weights.softmax(-1) @ value.float()).to(query.dtype), weights.logsumexp(-1)

    library = torch.library.Library("aten", "IMPL")
    library.impl(KERNEL, kernel, "CPU")
    try:
        yield runs
    finally:
        library._destroy()


@pytest.mark.parametrize(
    ("option", "times"),
    [({"checkpointing": "disabled"}, 1), ({"checkpointing": "selective"}, 1), ({"checkpointing": "full"}, 2)],
    ids=["disabled", "selective", "full"],
)
@pytest.mark.filterwarnings("ignore:.*Overriding a previously registered kernel")
def test_attention_runs_so_many_times_a_layer(walk: Walk, option: Mapping[str, Any], times: int) -> None:
    with counted_kernel() as runs:
        result = walk.run("sft", option, again=True)

    assert result.seen is not None, result.message
    assert len(runs) == times * N_LAYERS * N_STEPS
