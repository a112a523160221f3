"""What each of several trials side by side has to itself: cores, and on CUDA devices.

    hydra.launcher.slots=2 on cores 0 to 7 and devices 0 and 1
        slot 0   cores 0 to 3, CUDA_VISIBLE_DEVICES=0
        slot 1   cores 4 to 7, CUDA_VISIBLE_DEVICES=1

All shares are alike, so that trials of one study may be compared, and what does not divide lies idle.  A
physical core is not split between two slots unless there are fewer of them than slots: its threads would slow
each other down.  Memory bandwidth, caches and clocks are shared all the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from memsweep.errors import ConfigError
from memsweep.machine import CORES, n_cores
from memsweep.trial.variables import DEVICES

_SETTING = "hydra.launcher.slots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What one trial has to itself while it runs.

    Attributes:
        n_slots: Trials that may run side by side, this one among them.
        cores: Numbers of the cores that it may use.
        devices: Those that it sees, as CUDA_VISIBLE_DEVICES names them; empty where none are shared out.
        n_taken: Slots whose part it has: several processes may need more than one slot gives.
    """

    n_slots: int
    cores: tuple[int, ...]
    devices: tuple[str, ...] = ()
    n_taken: int = 1

    @property
    def environment(self) -> dict[str, str]:
        """The variables that keep a process to its devices."""
        return {DEVICES: ",".join(self.devices)} if self.devices else {}

    @property
    def condition(self) -> str:
        """What of it must be alike for figures to be compared: what each slot gives, however many it took.

        How many cores it has, the machine says.
        """
        n_each = len(self.devices) // self.n_taken
        devices = f", {n_each} devices" if n_each > 1 else ""
        return f"one of {self.n_slots} slots{devices}"

    @property
    def text(self) -> str:
        """How much it is, in words."""
        counts = {"core": len(self.cores), "device": len(self.devices)}
        return " and ".join(f"{n} {what}{'s' * (n > 1)}" for what, n in counts.items() if n)

    def facts(self) -> dict[str, Any]:
        """Return it JSON-ready."""
        facts = {"n_slots": self.n_slots, "cores": list(self.cores), "devices": list(self.devices)}
        return facts if self.n_taken == 1 else {**facts, "n_taken": self.n_taken}


def leases(
    n_slots: int,
    environment: Mapping[str, str],
    *,
    on_devices: bool = True,
    cores: Sequence[int] | None = None,
    n_usable: int | None = None,
    topology: Path = CORES,
) -> tuple[Lease, ...]:
    """Return one lease a slot, all of the same size.

    Args:
        n_slots: Trials that may run side by side.
        environment: What a trial's process would get without a lease.
        on_devices: The trials compute on CUDA devices where any are visible.
        cores: Numbers of the cores to share out; None means those that this process may use.
        n_usable: How many cores' worth of time there is; None means what the control group grants.
        topology: Where the kernel's files on cores are.

    Raises:
        ConfigError: If there are fewer cores, or fewer visible devices, than slots.
    """
    if cores is None:
        cores = sorted(os.sched_getaffinity(0))
    n_usable = n_cores() if n_usable is None else n_usable
    problems = []
    devices: tuple[str, ...] = ()
    try:
        devices = visible_devices(environment) if on_devices else ()
    except ConfigError as error:
        problems.append(str(error))
    n_shared = min(len(cores), n_usable)
    if n_shared < n_slots:
        problems.append(
            f"{_SETTING}={n_slots} needs a core for each trial, and this process may use {n_shared} (its "
            f"affinity and its control group's quota); type {_SETTING}={max(1, n_shared)} or less"
        )
    if 0 < len(devices) < n_slots:
        problems.append(
            f"{_SETTING}={n_slots} needs a device for each trial, and {len(devices)} can be seen: "
            f"{', '.join(devices)}; type {_SETTING}={len(devices)} or less, or leave devices out with "
            f"launch.device=cpu (any other app: {DEVICES}= before the command)"
        )
    if problems:
        raise ConfigError("\n".join(problems))
    n_each = len(devices) // n_slots
    return tuple(
        Lease(n_slots=n_slots, cores=own, devices=devices[slot * n_each : (slot + 1) * n_each])
        for slot, own in enumerate(core_shares(cores, n_slots, n_usable, topology))
    )


def together(parts: Sequence[Lease]) -> Lease:
    """Return the parts of several slots as one."""
    return replace(
        parts[0],
        cores=tuple(sorted(core for part in parts for core in part.cores)),
        devices=tuple(device for part in parts for device in part.devices),
        n_taken=len(parts),
    )


def visible_devices(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the devices that a process with this environment sees, as CUDA_VISIBLE_DEVICES may name them.

    Where the variable is set its own names are kept, numbers, UUIDs and MIG instances alike: they mean the
    same in a part of the list.  Where it is not, the driver's UUIDs, since numbers depend on CUDA's order.
    Source: CUDA C++ Programming Guide, CUDA Environment Variables: the list ends at the first name that is
    no device's, -1 for one, and shows nothing where one is named twice.

    Raises:
        ConfigError: If the variable names a device twice.
    """
    text = environment.get(DEVICES)
    if text is None:
        return tuple(_driver_devices())
    names: list[str] = []
    for name in map(str.strip, text.split(",")):
        if name in ("", "-1"):
            break
        if name in names:
            raise ConfigError(
                f"{DEVICES}={text} names {name} twice, and CUDA then shows no device; name it once"
            )
        names.append(name)
    return tuple(names)


def core_shares(
    cores: Sequence[int], n_slots: int, n_usable: int, topology: Path = CORES
) -> list[tuple[int, ...]]:
    """Return the cores of each slot: as many for each, whole physical cores where there are enough.

    Args:
        cores: Numbers of the cores, at least `n_slots`.
        n_slots: How many shares.
        n_usable: Cores' worth of time, at least `n_slots`: no share has more of it than its part.
        topology: Where the kernel's files on cores are.
    """
    physical: dict[tuple[int, int], list[int]] = {}
    for core in sorted(cores):
        physical.setdefault(_physical_core(core, topology), []).append(core)
    units = [physical[key] for key in sorted(physical)]
    if len(units) < n_slots:
        units = [[core] for unit in units for core in unit]
    n_each = len(units) // n_slots
    shares = []
    for slot in range(n_slots):
        own = units[slot * n_each : (slot + 1) * n_each]
        # One thread of each physical core first: where not all are taken, those that do not share one are.
        shares.append([core for rank in zip_longest(*own) for core in rank if core is not None])
    size = min(n_usable // n_slots, *map(len, shares))
    return [tuple(sorted(share[:size])) for share in shares]


def _physical_core(core: int, topology: Path) -> tuple[int, int]:
    """Return what all threads of a physical core have in common: its package, and its first thread."""
    folder = topology / f"cpu{core}" / "topology"
    try:
        package = int((folder / "physical_package_id").read_text(encoding="ascii"))
        siblings = (folder / "thread_siblings_list").read_text(encoding="ascii")
        return package, int(siblings.replace("-", ",").split(",")[0])
    except (OSError, ValueError):  # a kernel that does not say: every core for itself
        return 0, core


def _driver_devices() -> list[str]:
    """Return the UUID of each of the NVIDIA driver's devices, or of the instances that one is split into."""
    from memsweep.measure.driver import ask, tried  # not for trials, which import this module too

    def question(nvml: Any) -> list[str]:
        found = []
        for index in range(nvml.nvmlDeviceGetCount()):
            device = nvml.nvmlDeviceGetHandleByIndex(index)
            mode = tried(nvml.nvmlDeviceGetMigMode, device)
            places = range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)) if mode and mode[0] else ()
            parts = [tried(nvml.nvmlDeviceGetMigDeviceHandleByIndex, device, place) for place in places]
            found += (
                [nvml.nvmlDeviceGetUUID(part) for part in parts if part is not None]
                if places
                else [nvml.nvmlDeviceGetUUID(device)]
            )
        return [uuid.decode() if isinstance(uuid, bytes) else str(uuid) for uuid in found]

    return ask(question) or []
