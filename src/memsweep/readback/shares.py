"""Which part of the weights, and of what the optimizer keeps, does this process hold?

Several processes may each hold a part of every weight: PyTorch as a tensor that knows of the others,
DeepSpeed as an empty one with its part beside it.  What a weight is as a whole both still say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.tensor import DTensor

# Where DeepSpeed keeps the numbers that it updates, by stage: 3, then 1 and 2.
# Source: deepspeed==0.19.8 runtime/zero/stage3.py, stage_1_and_2.py
_ENGINE_PARTS = ("fp32_partitioned_groups_flat", "single_partition_of_fp32_groups")


def n_numbers(weight: torch.Tensor) -> int:
    """Return how many numbers a weight has as a whole."""
    return int(getattr(weight, "ds_numel", weight.numel()))


def shape(weight: torch.Tensor) -> list[int]:
    """Return the shape of a weight as a whole."""
    return list(getattr(weight, "ds_shape", weight.shape))


def n_here(weight: torch.Tensor) -> int:
    """Return how many numbers of a weight this process holds."""
    if isinstance(weight, DTensor):
        return weight.to_local().numel()
    part = getattr(weight, "ds_tensor", None)
    return weight.numel() if part is None or weight.numel() else int(part.numel())


def weights_share(model: torch.nn.Module) -> float:
    """Return the share of a model's weights that is here; 1 where it is whole."""
    weights = list(model.parameters())
    return sum(map(n_here, weights)) / max(1, sum(map(n_numbers, weights)))


def optimizer_share(trainer: Any) -> float | None:
    """Return the share of the trained numbers that the optimizer updates here; None without an optimizer."""
    if trainer.optimizer is None:
        return None
    trained = sum(n_numbers(weight) for weight in trainer.model.parameters() if weight.requires_grad)
    return sum(map(n_here, updated(trainer.optimizer))) / max(1, trained)


def updated(optimizer: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that an optimizer updates here: its groups, or the parts that an engine gives it."""
    while True:
        for name in _ENGINE_PARTS:
            if parts := getattr(optimizer, name, None):
                yield from parts
                return
        if not hasattr(optimizer, "optimizer"):
            break
        optimizer = optimizer.optimizer
    for group in optimizer.param_groups:
        yield from group["params"]
