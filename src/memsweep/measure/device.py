"""How much memory did a trial on CUDA need: by PyTorch's allocator, by the driver, and on the host beside it?

The objective is the peak that PyTorch's allocator reserved while training: that is what a device must have.
Beside it stand what of it was handed out, asked for and in use at the peaks, and what the driver reports for
the process and its children, who may be an engine that generates.
"""

from __future__ import annotations

from typing import Any, Self

import torch

from memsweep.measure.driver import process_tree_bytes
from memsweep.measure.resident import reset_peak, resident

# Source: torch==2.13.0 torch.cuda.memory_stats.
_PEAKS = {
    "reserved": "reserved_bytes.all.peak",
    "allocated": "allocated_bytes.all.peak",
    "active": "active_bytes.all.peak",
    "requested": "requested_bytes.all.peak",
}
_RETRIES = "num_alloc_retries"
_PINNED = "allocated_bytes.peak"


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
        reset_peak()
        self._host_start = resident()
        self._process_bytes: int | None = None
        self._part = "load"
        self._peaks: dict[str, dict[str, int]] = {}
        torch.cuda.reset_peak_memory_stats()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._budget is not None:
            torch.cuda.set_per_process_memory_fraction(1.0)

    def enter(self, part: str) -> None:
        """End the part that was, and begin another.

        What loading has left reserved counts in the next part as well: it is not given back.
        """
        torch.cuda.synchronize()
        self._look()
        self._part = part
        torch.cuda.reset_peak_memory_stats()

    def check(self) -> None:
        """Do nothing: PyTorch's allocator refuses what is beyond the budget."""

    def settle(self) -> None:
        """Do nothing: the allocator is the same throughout, and its peaks count to the end."""

    def wait(self) -> None:
        """Wait until the device has done what it was given."""
        torch.cuda.synchronize()

    def measures(self) -> dict[str, float]:
        """Return the peaks, in bytes, over training and by part."""
        self._look()
        training = [peaks for part, peaks in self._peaks.items() if part != "load"] or [*self._peaks.values()]
        peak = {kind: max(peaks[kind] for peaks in training) for kind in _PEAKS}
        host = max(0, resident().peak_anonymous_bytes - self._host_start.anonymous_bytes)
        found: dict[str, float] = {
            "peak_memory_bytes": peak["reserved"],
            "peak_allocated_bytes": peak["allocated"],
            "peak_active_bytes": peak["active"],
            "peak_requested_bytes": peak["requested"],
            "fragmentation_share": 1 - peak["allocated"] / peak["reserved"] if peak["reserved"] else 0.0,
            "allocation_retries": torch.cuda.memory_stats().get(_RETRIES, 0),
            "host_peak_bytes": host,
            **{f"{part}_peak_bytes": peaks["reserved"] for part, peaks in self._peaks.items()},
        }
        if self._process_bytes is not None:
            found["peak_process_bytes"] = self._process_bytes
        pinned = _pinned_bytes()
        return found if pinned is None else {**found, "host_pinned_bytes": pinned}

    def held_bytes(self) -> int:
        """Return what PyTorch has handed out now."""
        return torch.cuda.memory_allocated()

    def in_use_bytes(self) -> int:
        """Return what is in use now: the same."""
        return self.held_bytes()

    def facts(self) -> dict[str, Any]:
        """Return how the figure was taken."""
        return {
            "kind": "peak reserved by PyTorch's CUDA allocator while training",
            "device": torch.cuda.get_device_name(),
        }

    def _look(self) -> None:
        stats = torch.cuda.memory_stats()
        self._peaks[self._part] = {kind: int(stats.get(key, 0)) for kind, key in _PEAKS.items()}
        # PyTorch returns nothing to the driver by itself, so what is held at the end of a part is its peak.
        process = process_tree_bytes(str(torch.cuda.get_device_properties().uuid))
        if process is not None:
            self._process_bytes = max(process, self._process_bytes or 0)


def _pinned_bytes() -> int | None:
    """Return the peak of pinned host memory; None where PyTorch keeps no account of it."""
    stats = getattr(torch.cuda, "host_memory_stats", None)
    return None if stats is None else stats().get(_PINNED)
