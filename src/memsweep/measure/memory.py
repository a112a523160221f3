"""How much memory did a trial need at its peak?

On CUDA: the peak that PyTorch's allocator reserved while training; beside it the peak that it handed out,
and what the driver reports for the process.  On a CPU: the growth of the peak of anonymous resident memory
over the point just before the model was built.  Anonymous only, because a process that was forked from a warm
template faults in tens of MiB of library pages that are not the trial's.
"""

from __future__ import annotations

import gc
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from memsweep.measure.allocator import Allocator, loosen, tighten
from memsweep.units import GIB, KIB, bytes_text

_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Source: Linux Documentation/filesystems/proc.rst: 5 resets the peak resident set size.
_RESET_PEAK = "5"
# Address space that a trial may reserve beyond its budget and hardly touch.  TRL's fused head alone reserves
# min(tokens, 4096) x 32768 floats, 512 MiB, of which it touches the vocabulary's share.
# Source: trl==1.16.0 trl/kernels/chunked_logprob.py.
UNTOUCHED_BYTES = GIB


@dataclass(frozen=True, slots=True)
class Resident:
    """This process's resident memory, as the kernel accounts for it.

    Attributes:
        anonymous_bytes: Not backed by a file: heaps, stacks, and private pages that were written to.
        file_bytes: Backed by files and shared memory: libraries, mapped weights.
        peak_bytes: Highest sum of the two since the process began, or since `reset_peak`.
        data_bytes: Address space for data, resident or not: what RLIMIT_DATA limits.
    """

    anonymous_bytes: int
    file_bytes: int
    peak_bytes: int
    data_bytes: int

    @property
    def peak_anonymous_bytes(self) -> int:
        """The peak less the pages of files, which come early and stay."""
        return max(self.anonymous_bytes, self.peak_bytes - self.file_bytes)


def resident() -> Resident:
    """Return this process's resident memory now.

    Raises:
        RuntimeError: On a system without Linux's /proc.
    """
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise RuntimeError(f"memory on a CPU is read from {_STATUS}, which only Linux has") from error
    fields = dict(line.split(":", 1) for line in lines if ":" in line)

    def size(name: str) -> int:
        return int(fields[name].split()[0]) * KIB

    return Resident(size("RssAnon"), size("RssFile") + size("RssShmem"), size("VmHWM"), size("VmData"))


def reset_peak() -> bool:
    """Let the peak of resident memory begin anew; tell whether the kernel did."""
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


class BudgetExceeded(Exception):
    """A trial on a CPU needed more than its budget grants.

    Attributes:
        needed_bytes: Its peak until now.
        budget_bytes: What it was granted.
    """

    def __init__(self, needed_bytes: int, budget_bytes: int) -> None:
        self.needed_bytes, self.budget_bytes = needed_bytes, budget_bytes
        super().__init__(f"{bytes_text(needed_bytes)} were needed, the budget is {bytes_text(budget_bytes)}")


class HostMemory:
    """The memory of a trial that computes on the CPU.

    From its making until `settle`, freed memory is given back at once, and the peak counts; after, freed
    memory is kept, so that steps are as fast as in any other program.

    A budget is held against the figure that is reported, at each `check`.  Besides, while the peak counts,
    requests far beyond it fail at once, so that a trial cannot take the whole machine.

    Args:
        budget_bytes: What the trial may take; None means all there is.
    """

    def __init__(self, budget_bytes: int | None = None) -> None:
        gc.collect()  # what making data left in cycles would be freed in the middle, and used again
        self.allocator = tighten()
        self.starts_anew = reset_peak()
        self.start = resident()
        self._peak: int | None = None
        self._budget = budget_bytes
        self._limits = resource.getrlimit(resource.RLIMIT_DATA)
        if budget_bytes is not None:
            highest = self._limits[1]
            wanted = self.start.data_bytes + budget_bytes + UNTOUCHED_BYTES
            soft = wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, highest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lift()

    def begin(self) -> None:
        """Do nothing: the model counts as well."""

    def check(self) -> None:
        """Hold the peak until now against the budget.

        Raises:
            BudgetExceeded: If it is above.
        """
        if self._budget is not None and self._peak is None and self._growth() > self._budget:
            raise BudgetExceeded(self._growth(), self._budget)

    def settle(self) -> None:
        """Take the peak, and stop giving memory back."""
        self._peak = self._growth()
        self._lift()
        if self.allocator is Allocator.TIGHT:
            loosen()

    def wait(self) -> None:
        """Do nothing: a CPU has finished what it was given when the call returns."""

    def measures(self) -> dict[str, float]:
        """Return the peak, in bytes."""
        return {"peak_memory_bytes": self._growth() if self._peak is None else self._peak}

    def held_bytes(self) -> int:
        """Return what is held now over the start."""
        return max(0, resident().anonymous_bytes - self.start.anonymous_bytes)

    def facts(self) -> dict[str, Any]:
        """Return how the figure was taken."""
        return {
            "kind": "growth of peak anonymous resident memory",
            "allocator": str(self.allocator),
            "peak_reset": self.starts_anew,
            "start_anonymous_bytes": self.start.anonymous_bytes,
        }

    def _growth(self) -> int:
        return max(0, resident().peak_anonymous_bytes - self.start.anonymous_bytes)

    def _lift(self) -> None:
        if self._budget is not None:
            resource.setrlimit(resource.RLIMIT_DATA, self._limits)


class DeviceMemory:
    """The memory of a trial that computes on CUDA: the current device's.

    Args:
        budget_bytes: What the trial may take, as a device of that size would grant it; None means all.
    """

    def __init__(self, budget_bytes: int | None = None) -> None:
        self._budget = budget_bytes
        if budget_bytes is not None:
            total = torch.cuda.get_device_properties().total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, budget_bytes / total))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._budget is not None:
            torch.cuda.set_per_process_memory_fraction(1.0)

    def begin(self) -> None:
        """Let the peaks begin, with the model loaded: loading has its own, which is not training's."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()

    def check(self) -> None:
        """Do nothing: PyTorch's allocator refuses what is beyond the budget."""

    def settle(self) -> None:
        """Do nothing: the allocator is the same throughout, and its peaks count to the end."""

    def wait(self) -> None:
        """Wait until the device has done what it was given."""
        torch.cuda.synchronize()

    def measures(self) -> dict[str, float]:
        """Return the peaks, in bytes."""
        found: dict[str, float] = {
            "peak_memory_bytes": torch.cuda.max_memory_reserved(),
            "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        }
        process = process_bytes()
        return found if process is None else {**found, "peak_process_bytes": process}

    def held_bytes(self) -> int:
        """Return what PyTorch has handed out now."""
        return torch.cuda.memory_allocated()

    def facts(self) -> dict[str, Any]:
        """Return how the figure was taken."""
        return {
            "kind": "peak reserved by PyTorch's CUDA allocator while training",
            "device": torch.cuda.get_device_name(),
        }


Memory = HostMemory | DeviceMemory


def process_bytes() -> int | None:
    """Return the device memory that the driver reports for this process, None when it does not say.

    PyTorch returns nothing to the driver by itself, so what is held at the end of training is the peak.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties().uuid}")
            found = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            mine = [entry.usedGpuMemory for entry in found if entry.pid == os.getpid()]
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        # No driver library, another process namespace, a device that keeps no such account: the figure is
        # only beside the objective, and each library generation has its own error for it.
        return None
    return int(mine[0]) if mine and mine[0] else None


def keep_in_memory(model: torch.nn.Module) -> int:
    """Copy weights that lie in a mapped file into memory of the process; return the bytes copied.

    Weights that are loaded in the precision of their file stay pages of that file.  Trained ones become
    memory with the first optimizer step; frozen ones never would, and an adapter would seem to need no base.
    """
    mapped = _mapped_weights()
    copied = 0
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.device.type != "cpu" or not tensor.numel():
            continue
        address = tensor.data_ptr()
        if any(first <= address < last for first, last in mapped):
            tensor.data = tensor.data.clone()
            copied += tensor.numel() * tensor.element_size()
    return copied


def _mapped_weights() -> list[tuple[int, int]]:
    """Return the address ranges at which files of weights are mapped."""
    ranges = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.rpartition(".")[2] in ("safetensors", "bin", "pt"):
            first, last = line.split(" ", 1)[0].split("-")
            ranges.append((int(first, 16), int(last, 16)))
    return ranges
