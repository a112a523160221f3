"""Let accelerate take processes on a CPU for processes with a device each, so that sharding shards for real.

accelerate has FSDP and DeepSpeed on accelerators only: on a CPU it makes plain data parallelism of FSDP
without a word, or two trainings that do not know of each other.  Here its question for the kind of processes
gets the answer "several devices, joined by gloo", and that for the device "the CPU".  All else is its own
code, PyTorch's and DeepSpeed's.  Both answers are methods of its own with an underscore, so what this does is
read back in every process before the first step (`memsweep.readback.in_force`), and said wherever its figures
are.

Source: accelerate==1.15.0 state.py PartialState._prepare_backend, set_device; transformers==5.24.0
training_args.py _validate_args; deepspeed==0.19.8 comm/torch.py build_shm_op.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
import transformers.training_args
from accelerate.state import PartialState
from accelerate.utils import DistributedType

REMARK = "processes on a CPU stood in for devices (launch=cpu_simulated): these are no device's figures"
"""What a reader must know of every figure that was made so."""

_state = {"is_on": False}


def is_simulated() -> bool:
    """Tell whether this process takes its CPU for an accelerator."""
    return _state["is_on"]


def take_the_cpu_for_an_accelerator(*, with_deepspeed: bool) -> None:
    """Do so for the rest of this process, which must be one of several.

    Args:
        with_deepspeed: DeepSpeed is to shard.
    """
    PartialState._prepare_backend = _prepare_backend
    PartialState.set_device = _set_device
    # Whether an accelerator multiplies bfloat16 was settled when the precision was chosen, for the CPU.
    transformers.training_args.is_torch_bf16_gpu_available = lambda: True
    # What FSDP takes for its device where nobody names one: in a build with CUDA that would be CUDA.
    torch._C._get_accelerator = _cpu  # type: ignore[assignment]
    if with_deepspeed:
        # It would compile a way of its own to share a CPU's memory, under a lock that outlives who held it.
        importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None  # type: ignore[attr-defined]
    _state["is_on"] = True


def _prepare_backend(_: Any, cpu: bool = False, *__: Any, **___: Any) -> tuple[str, DistributedType]:
    del cpu
    return "gloo", DistributedType.MULTI_GPU


def _cpu() -> torch.device:
    return torch.device("cpu")


def _set_device(state: Any) -> None:
    state.device = _cpu()
