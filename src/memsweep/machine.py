"""What this machine offers, found without importing torch and without touching CUDA."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from enum import StrEnum
from importlib import metadata
from pathlib import Path

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""What torch's allocator reads: where both are set the first, older name wins.  Tried with torch 2.13.0."""


class Device(StrEnum):
    """What a trial computes on."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def device(asked: Device = Device.AUTO) -> tuple[Device, str]:
    """Return what a trial computes on, and why.

    Args:
        asked: `launch.device`; `auto` takes CUDA where the driver shows a device and torch can use it.
    """
    if asked is not Device.AUTO:
        return asked, f"launch.device={asked}"
    version = package_versions(["torch"]).get("torch")
    if version is None:
        return Device.CPU, "torch is not installed"
    if version.endswith("+cpu"):
        return Device.CPU, f"torch {version} is built without CUDA"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return Device.CPU, f"CUDA_VISIBLE_DEVICES={visible!r} hides every device"
    n_devices = len(_capabilities())
    if n_devices:
        return Device.CUDA, f"the NVIDIA driver shows {n_devices} device(s)"
    return Device.CPU, "the NVIDIA driver shows no device"


def compute_capability() -> float | None:
    """Return the least compute capability among the driver's devices, e.g. 9.0; None without one."""
    return min(_capabilities(), default=None)


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the installed ones of `names`, each with its version."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def n_cores() -> int:
    """Return how many cores this process may use: its affinity, and its control group's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(Path("/sys/fs/cgroup/cpu.max"))
    return max(1, min(count, int(quota))) if quota is not None else count


def has_native_bf16() -> tuple[bool, str]:
    """Tell whether the processor multiplies bfloat16 itself, and how that is known.

    Without it a bf16 training step on a CPU took 10 to 21 s where fp32 took 0.3 to 1.8 s.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False, "this system has no /proc/cpuinfo"
    line = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    flags = set(line.partition(":")[2].split())
    found = sorted(flags & {"avx512_bf16", "amx_bf16", "bf16"})
    if found:
        return True, f"processor flag {found[0]}"
    return False, "the processor has none of the flags avx512_bf16, amx_bf16, bf16"


def _quota(file: Path) -> float | None:
    """Return the cores that a control group grants: `max 100000` means no limit."""
    try:
        allowed, period = file.read_text(encoding="utf-8").split()
        return int(allowed) / int(period)
    except (OSError, ValueError):
        return None


def _capabilities() -> list[float]:
    """Return the compute capability of each device of the NVIDIA driver, through NVML.

    NVML makes no CUDA context: asking costs no device memory and does not spoil a later fork.
    Source: NVML API reference, nvmlDeviceGetCudaComputeCapability.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return []
    if nvml.nvmlInit_v2() != 0:
        return []
    try:
        count, found = ctypes.c_uint(), []
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for index in range(count.value):
            handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
                nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
                found.append(major.value + minor.value / 10)
        return found
    finally:
        nvml.nvmlShutdown()
