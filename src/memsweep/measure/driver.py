"""What does the NVIDIA driver say of a device, and of who uses it?

Asked through NVML, which makes no CUDA context: asking costs no device memory.  Where there is no driver, or
it keeps no such account, the answer is None or empty; nothing here raises.  A device is named by its UUID, as
`str(torch.cuda.get_device_properties().uuid)` gives it; None means the first one that this process may see.

Written from NVML's reference, not run on hardware.

Source: NVML API reference guide (docs.nvidia.com/deploy/nvml-api), nvidia-ml-py==13.615.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from memsweep.units import bytes_text

Answer = TypeVar("Answer")
"""What a question is answered with."""

PROC = Path("/proc")

# Source: Linux include/linux/proc_ns.h, PROC_PID_INIT_INO: the namespace that a machine boots with.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"

_MILLIWATTS = 1000


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process that computes on a device.

    Attributes:
        pid: Its number.
        used_bytes: Device memory that it holds; None where the driver does not say.
    """

    pid: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """Who holds memory of a device.

    Attributes:
        total_bytes: What the device has.
        free_bytes: What nobody holds.
        own_bytes: What this process and those that it started hold; None where the driver does not say.
        others: Other processes that compute on the device.
    """

    total_bytes: int
    free_bytes: int
    own_bytes: int | None
    others: tuple[DeviceProcess, ...] = ()

    @property
    def others_bytes(self) -> int:
        """What other processes hold, as far as the driver says."""
        return sum(other.used_bytes or 0 for other in self.others)

    @property
    def others_text(self) -> str:
        """The other processes, each with what it holds: `process 4711 holds 2.0 GiB`."""
        return ", ".join(
            f"process {other.pid} holds {bytes_text(other.used_bytes)}"
            if other.used_bytes is not None
            else f"process {other.pid} computes on it"
            for other in self.others
        )

    @property
    def remark(self) -> str | None:
        """The sentence for a reader, None when the device is ours alone."""
        text = f"the GPU was shared: {self.others_text}; neither its speed nor its memory were all ours"
        return text if self.others else None


def device_use(uuid: str | None = None) -> DeviceUse | None:
    """Return who holds memory of a device, None without a driver."""

    def question(nvml: Any) -> DeviceUse:
        handle = handle_of(nvml, uuid)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        own_bytes, others = _split(tried(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or [])
        total_bytes, free_bytes = int(memory.total), int(memory.free)
        return DeviceUse(total_bytes=total_bytes, free_bytes=free_bytes, own_bytes=own_bytes, others=others)

    return ask(question)


def process_tree_bytes(uuid: str | None = None) -> int | None:
    """Return what this process and those that it started hold of a device, None where that is not known."""
    use = device_use(uuid)
    return None if use is None else use.own_bytes


def device_facts() -> list[dict[str, Any]]:
    """Return what the driver says of each visible device, JSON-ready; empty without a driver.

    Keys, each only where the driver says: `name`, `uuid`, `memory_bytes`, `driver_version`,
    `power_limit_watts`, `sm_clock_mhz`, `memory_clock_mhz`.
    """

    def question(nvml: Any) -> list[dict[str, Any]]:
        version = tried(nvml.nvmlSystemGetDriverVersion)
        found = []
        for handle in _visible(nvml):
            memory = tried(nvml.nvmlDeviceGetMemoryInfo, handle)
            limit = tried(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
            known = {
                "name": tried(nvml.nvmlDeviceGetName, handle),
                "uuid": tried(nvml.nvmlDeviceGetUUID, handle),
                "memory_bytes": None if memory is None else int(memory.total),
                "driver_version": version,
                "power_limit_watts": None if limit is None else limit / _MILLIWATTS,
                "sm_clock_mhz": tried(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
                "memory_clock_mhz": tried(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            }
            found.append({name: value for name, value in known.items() if value is not None})
        return found

    return ask(question) or []


def process_tree(root: int, proc: Path = PROC) -> frozenset[int]:
    """Return `root` and all processes that descend from it: what a trainer starts computes for it."""
    children: dict[int, list[int]] = {}
    for stat in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it ended in between
            # The name in parentheses may hold spaces; after it come the state and the parent.
            parent = int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, waiting = {root}, [root]
    while waiting:
        new = [child for child in children.get(waiting.pop(), []) if child not in found]
        found.update(new)
        waiting += new
    return frozenset(found)


def _split(entries: list[Any]) -> tuple[int | None, tuple[DeviceProcess, ...]]:
    """Return what our processes hold, and the processes of others.

    The driver numbers processes as the machine does, a container in its own way, so an entry may be our own:
    only where one is ours by its number, or there is no container, are others known.
    """
    ours = process_tree(os.getpid())
    own = [entry.usedGpuMemory for entry in entries if entry.pid in ours]
    if not own and not _numbers_are_the_machines():
        return None, ()
    others = tuple(
        DeviceProcess(entry.pid, entry.usedGpuMemory) for entry in entries if entry.pid not in ours
    )
    known = [n_bytes for n_bytes in own if n_bytes is not None]
    return (sum(known) if known else None), others


def _numbers_are_the_machines() -> bool:
    try:
        return os.readlink(PROC / "self" / "ns" / "pid") == _FIRST_PID_NAMESPACE  # noqa: PTH115 - no path
    except OSError:
        return False


def _visible(nvml: Any) -> list[Any]:
    """Return NVML's handles of the devices that this process may see, in its order.

    Numbers in CUDA_VISIBLE_DEVICES are taken as NVML's, by the bus; CUDA's own may be by speed.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return [handle_of(nvml, name.strip()) for name in visible.split(",") if name.strip() not in ("", "-1")]


def handle_of(nvml: Any, name: str | None) -> Any:
    """Return NVML's handle of a device: by its UUID or number; of the first that is visible for None."""
    if name is None:
        return _visible(nvml)[0]
    if name.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml.nvmlDeviceGetHandleByUUID(name if name.startswith(("GPU-", "MIG-")) else f"GPU-{name}")


def ask(question: Callable[[Any], Answer]) -> Answer | None:
    """Return the answer to a question that NVML is needed for, None when it cannot be asked.

    Each library generation has errors of its own, and the figures are only beside what is measured.
    """
    try:
        import pynvml  # 5 to 14 ms, and only those who ask pay

        pynvml.nvmlInit()
    except Exception:
        return None
    try:
        return question(pynvml)
    except Exception:
        return None
    finally:
        with contextlib.suppress(Exception):
            pynvml.nvmlShutdown()


def tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what NVML answers, None where this device or driver does not support the question."""
    try:
        return function(*arguments)
    except Exception:
        return None
