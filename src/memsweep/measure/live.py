"""How many bytes of tensors were alive at the peak of a piece of work, on a CPU?

Resident memory answers what a trial took from the machine; this answers what its tensors needed, which no
allocator and no library page enters.  PyTorch's profiler writes down each block that its CPU allocator hands
out and takes back, and the largest sum of these, on top of what was held before, is the peak.

Costs of a step of the `small` model with two micro-batches of 4 x 256 tokens, on two cores: 17,000 events,
which took 0 to 10 % of the step's time, 0.04 s to read, and 10 MiB that are freed once read.  They are
resident memory: take this after the peak of resident memory was taken.

Kineto, below the profiler, writes two lines to stderr each time unless KINETO_LOG_LEVEL is 6 or more.

Source: torch==2.13.0 c10/core/CPUAllocator.cpp (ProfiledCPUMemoryReporter), torch/autograd/profiler.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import torch
from torch.autograd.profiler import profile
from torch.distributed.tensor import DTensor

_MEMORY_EVENT = "[memory]"
"""Source: torch==2.13.0 torch/csrc/profiler/util.h, kMemoryEventName."""

_CPU = torch.autograd.DeviceType.CPU  # type: ignore[attr-defined]  # exported at runtime only

_ATTACHED_DEPTH = 3
"""How deep tensors hang on a tensor: a quantized weight's state, that state's own, and what is in it."""


class LiveTensors:
    """Follows the tensors that are made and freed in a `with` block by the thread that entered it.

    Backward runs in the same thread on a CPU.  Blocks that were there before and are freed inside are not
    seen to go, so begin where none of them is about to: between optimizer steps, with the gradients freed.

    Args:
        static_bytes: What tensors hold at the begin; see `held_tensor_bytes`.
    """

    def __init__(self, static_bytes: int = 0) -> None:
        self._alive_bytes = self._peak_bytes = static_bytes
        self._profile: profile | None = None

    def __enter__(self) -> Self:
        self._profile = profile(profile_memory=True)
        self._profile.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        if self._profile is None:
            return
        self._profile.__exit__(*error)  # type: ignore[no-untyped-call]
        results, self._profile = self._profile.kineto_results, None
        events: Iterable[Any] = results.events() if results is not None else []
        for event in events:  # in the order of time
            if event.name() == _MEMORY_EVENT and event.device_type() == _CPU:
                self._alive_bytes += event.nbytes()  # negative when freed
                self._peak_bytes = max(self._peak_bytes, self._alive_bytes)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were alive at once, once the block has ended."""
        return self._peak_bytes


def held_tensor_bytes(
    modules: Iterable[torch.nn.Module | None], optimizer: torch.optim.Optimizer | None = None
) -> int:
    """Return the bytes that tensors hold on the CPU now, each storage counted once.

    Args:
        modules: Their parameters, buffers and gradients count, and what a quantized weight carries along;
            None is skipped.
        optimizer: Its state counts.
    """
    sizes: dict[int, int] = {}
    for tensor in _held(modules, optimizer):
        if isinstance(tensor, DTensor):  # one of several processes holds a part of it
            tensor = tensor.to_local()
        if tensor.device.type == "cpu" and tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def _held(
    modules: Iterable[torch.nn.Module | None], optimizer: torch.optim.Optimizer | None
) -> Iterator[torch.Tensor]:
    for module in modules:
        if module is None:
            continue
        yield from module.buffers()
        for parameter in module.parameters():
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
            yield from _tensors(vars(parameter), _ATTACHED_DEPTH)
    if optimizer is not None:
        yield from _tensors(optimizer.state, _ATTACHED_DEPTH)


def _tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested containers, and on plain objects, but not those of modules."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth >= 0 and not isinstance(value, (torch.nn.Module, type)):
        if isinstance(value, Mapping):
            inner: Iterable[Any] = value.values()
        elif isinstance(value, (list, tuple, set)):
            inner = value
        else:
            inner = getattr(value, "__dict__", {}).values()
        for each in inner:
            yield from _tensors(each, depth - 1)
