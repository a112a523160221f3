"""Is what was asked for in force, once a trainer is built?

An instrument that cannot apply a technique must say so, or it attributes another set-up's numbers to it.  No
technique is known here by name: what was asked is compared with what is there seam by seam, field by field.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from memsweep.readback.allocator import allocator_differences
from memsweep.readback.model_in_force import (
    adapter_differences,
    checkpointing_differences,
    model_differences,
    reference_differences,
)
from memsweep.readback.plain import plain
from memsweep.readback.trainer_facts import fsdp_version, zero_stage
from memsweep.readback.trainer_in_force import field_differences, trainer_differences
from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built

# What a way to share the work over processes looks like: accelerate's types, and the version or stage of it.
# Source: accelerate==1.15.0 utils/dataclasses.py DistributedType
_PLAIN_PARALLEL = ("MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_NPU", "MULTI_HPU", "MULTI_MLU", "MULTI_MUSA")
_SHARDED: Mapping[str, tuple[tuple[str, ...], int | None]] = {
    "none": (("NO",), None),
    "ddp": (_PLAIN_PARALLEL, None),
    "fsdp2": (("FSDP",), 2),
    "zero2": (("DEEPSPEED",), 2),
    "zero3": (("DEEPSPEED",), 3),
}


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
    accelerator = trainer.accelerator
    processes = int(asked.get("processes") or 1) * int(asked.get("nodes") or 1)
    if accelerator.num_processes != processes:
        yield f"{processes} processes were asked for; accelerate has {accelerator.num_processes}"
    sharding = str(asked.get("sharding") or ("none" if processes == 1 else "ddp"))
    kind = str(plain(accelerator.distributed_type))
    version = fsdp_version(trainer) or zero_stage(trainer)
    types, wanted = _SHARDED.get(sharding, ((sharding.upper(),), None))
    if kind not in types:
        yield f"sharding={sharding} was asked for; accelerate has {kind}"
    elif wanted is not None and version != wanted:
        yield f"sharding={sharding} was asked for; {kind} has version or stage {version}"


def _variable_differences(asked: Mapping[str, str]) -> Iterable[str]:
    for name, value in asked.items():
        if os.environ.get(name) != value:
            yield f"{name}={value} was asked for; the environment has {os.environ.get(name)!r}"
