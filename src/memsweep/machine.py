"""What this machine offers, found without importing torch and without touching CUDA."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""What torch's allocator reads: where both are set the first, older name wins.  Tried with torch 2.13.0."""

PROC, CORES = Path("/proc"), Path("/sys/devices/system/cpu")

# Not from memsweep.units: this module imports nothing of ours.
_KIB, _GIB, _KHZ_PER_MHZ = 1 << 10, 1 << 30, 1000


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


def n_devices() -> int:
    """Return how many of the driver's devices a trial would see."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    n_devices = len(_capabilities())
    if visible is None:
        return n_devices
    named = [name.strip() for name in visible.split(",")]
    shown = next((place for place, name in enumerate(named) if name in ("", "-1")), len(named))
    return min(n_devices, shown) if n_devices else 0


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


def machine_name(devices: Sequence[Mapping[str, Any]] = (), proc: Path = PROC, n_slots_taken: int = 1) -> str:
    """Return what of a machine must be alike for figures to be compared, in words.

    `AMD EPYC 9654, 2 cores, 16 GiB; NVIDIA H200, 140 GiB`: processor, cores that may be used, memory, and the
    devices that are computed on.

    Args:
        devices: Those that are computed on, each with its `name` and `memory_bytes`, as the driver says them.
        proc: Where the kernel's files are.
        n_slots_taken: How many slots of a study it is: of the cores, what one gives is said.
    """
    memory_bytes = _memory_bytes(proc)
    parts = [_processor(proc), f"{n_cores() // n_slots_taken} cores"]
    parts += [f"{memory_bytes / _GIB:.0f} GiB"] if memory_bytes else []
    kinds = [
        ", ".join(
            [str(found.get("name", "unknown device"))]
            + ([f"{found['memory_bytes'] / _GIB:.0f} GiB"] if "memory_bytes" in found else [])
        )
        for found in devices
    ]
    counted = [f"{n} x {kind}" if (n := kinds.count(kind)) > 1 else kind for kind in dict.fromkeys(kinds)]
    return "; ".join([", ".join(parts), *counted])


def machine_facts(
    devices: Sequence[Mapping[str, Any]] = (), proc: Path = PROC, cores: Path = CORES
) -> dict[str, Any]:
    """Return what is worth knowing of the machine that figures come from, JSON-ready.

    Args:
        devices: What the driver says of those that are computed on.
        proc: Where the kernel's files are.
        cores: Where the kernel's files on cores are.
    """
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    known = {
        "processor": _processor(proc),
        "cores": usable,
        "n_cores_usable": n_cores(),
        "n_cores_total": os.cpu_count(),
        "clock_mhz": _clock_mhz(usable, proc, cores),
        "governor": _governor(usable, cores),
        "memory_bytes": _memory_bytes(proc),
        "kernel": f"{platform.system()} {platform.release()}",
        "devices": [dict(found) for found in devices],
    }
    return {name: value for name, value in known.items() if value not in (None, [])}


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


def _processor(proc: Path) -> str:
    """Return the processor's model; its architecture where the kernel does not know the model."""
    lines = _text(proc / "cpuinfo").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return next(filter(None, named), platform.processor() or platform.machine())


def _memory_bytes(proc: Path) -> int | None:
    """Return the size of the machine's memory, in bytes."""
    lines = [line.split() for line in _text(proc / "meminfo").splitlines()]
    return next((int(words[1]) * _KIB for words in lines if words[:1] == ["MemTotal:"]), None)


def _clock_mhz(usable: Sequence[int], proc: Path, cores: Path) -> int | None:
    """Return the mean clock of the usable cores now; of all, where only /proc/cpuinfo has it."""
    files = [cores / f"cpu{core}" / "cpufreq" / "scaling_cur_freq" for core in usable]
    try:
        clocks = [int(text) / _KHZ_PER_MHZ for text in map(_text, files) if text]
        lines = _text(proc / "cpuinfo").splitlines()
        clocks = clocks or [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    except ValueError:
        return None
    return round(statistics.mean(clocks)) if clocks else None


def _governor(usable: Sequence[int], cores: Path) -> str | None:
    """Return what chooses the clock of the usable cores: `performance`, `powersave`; several are joined."""
    files = [cores / f"cpu{core}" / "cpufreq" / "scaling_governor" for core in usable]
    return "+".join(sorted({text for text in map(_text, files) if text})) or None


def _text(file: Path) -> str:
    """Return what a file of the kernel holds, empty where it is not there."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


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
        import pynvml  # 5 to 14 ms, and only those who ask pay

        pynvml.nvmlInit()
    except Exception:
        return []  # no driver; each way not to have one has an error of its own
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        found = [pynvml.nvmlDeviceGetCudaComputeCapability(handle) for handle in handles]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()
    return [major + minor / 10 for major, minor in found]
