"""Is what was asked for in force, once a trainer is built?

An instrument that cannot apply a technique must say so, or it attributes another set-up's numbers to it.  No
technique is known here by name: what was asked is compared with what is there seam by seam, field by field.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from memsweep.ranks.plan import ALONE, Plan, plan_of
from memsweep.readback.allocator import allocator_differences
from memsweep.readback.model_in_force import (
    adapter_differences,
    checkpointing_differences,
    model_differences,
    reference_differences,
)
from memsweep.readback.plain import plain
from memsweep.readback.shares import optimizer_share, weights_share
from memsweep.readback.trainer_facts import fsdp_version, zero_stage
from memsweep.readback.trainer_in_force import field_differences, trainer_differences
from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built

# What accelerate makes of several processes that each hold the whole, by the kind of their devices.
# Source: accelerate==1.15.0 utils/dataclasses.py DistributedType
_WHOLE_IN_EACH = ("MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_NPU", "MULTI_HPU", "MULTI_MLU", "MULTI_MUSA")

# Small weights may stay whole, and parts be filled up: of the copies that there may be too many.
_SLACK = 0.25


def differences(built: Built, settings: Settings) -> tuple[str, ...]:
    """Return one sentence for each thing that was asked for and is not in force.

    To be called when training begins: model placed and wrapped, optimizer made, no step taken.
    """
    trainer = built.trainer
    return (
        *field_differences(built),
        *trainer_differences(built),
        *checkpointing_differences(built),
        *model_differences(trainer, {**_own_keywords(built), **settings.model}),
        *adapter_differences(trainer.model, settings.adapter),
        *reference_differences(trainer),
        *_launch_differences(trainer, settings.launch),
        *_variable_differences(settings.environment),
        *allocator_differences(settings.environment, trainer.args.device.type),
    )


def _own_keywords(built: Built) -> dict[str, Any]:
    """Return the model's keywords among the trainer's arguments, in the words of the model seam."""
    keywords = dict(built.asked.get("model_init_kwargs") or {})
    keywords.pop("quantization_config", None)
    return keywords


def _launch_differences(trainer: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    """Compare the processes, and how they share the work, with what accelerate made of the launch."""
    accelerator, plan = trainer.accelerator, plan_of(asked)
    n_processes = 1 if plan is None else plan.n_processes
    if accelerator.num_processes != n_processes:
        yield f"{n_processes} processes were asked for; accelerate has {accelerator.num_processes}"
    wanted = ALONE if plan is None else plan.distributed_type
    found = str(plain(accelerator.distributed_type))
    if found != wanted and not {found, wanted} <= set(_WHOLE_IN_EACH):
        yield f"{wanted} was asked for; accelerate has {found}"
    elif plan is not None:
        yield from _share_differences(trainer, plan)


def _share_differences(trainer: Any, plan: Plan) -> Iterable[str]:
    """Hold what this process has of weights and optimizer against the part that it is to have."""
    for name, asked, found in (
        ("fsdp_version", plan.fsdp_version, fsdp_version(trainer)),
        ("zero stage", plan.zero_stage, zero_stage(trainer)),
    ):
        if asked != found:
            yield f"{name} {asked} was asked for; {plan.distributed_type} has {found}"
    for what, is_shared, share in (
        ("the model", plan.shards_weights, weights_share(trainer.model)),
        ("what the optimizer updates", plan.shards_optimizer, optimizer_share(trainer)),
    ):
        if not is_shared or share is None:
            continue
        # Parts may be unlike each other: what is smaller than a part is with one of them.
        shares = trainer.accelerator.reduce(torch.tensor(share, device=trainer.args.device), "sum")
        n_copies = float(shares)
        if n_copies > 1 + _SLACK * (plan.n_processes - 1):
            yield f"{what} was to be shared; all processes together hold {n_copies:.1f} times the whole"


def _variable_differences(asked: Mapping[str, str]) -> Iterable[str]:
    for name, value in asked.items():
        if os.environ.get(name) != value:
            yield f"{name}={value} was asked for; the environment has {os.environ.get(name)!r}"
