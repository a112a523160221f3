"""How many processes does a trial take, and how do they share its work?

The launch seam says it in accelerate's own words: `distributed_type` and `fsdp_config` are keys of the file
that `accelerate launch --config_file` takes, and `deepspeed_config` is what DeepSpeed takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memsweep.errors import ConfigError

ALONE = "NO"
"""What accelerate calls a single process.  Source: accelerate==1.15.0 utils/dataclasses.py."""

# Those that accelerate offers on an accelerator only; on a CPU it silently does something else.
# Source: accelerate==1.15.0 state.py AcceleratorState.__init__.
_ON_ACCELERATORS = ("FSDP", "DEEPSPEED")
_KEYS = ("processes", "distributed_type", "fsdp_config", "deepspeed_config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The processes of one trial.

    Attributes:
        n_processes: How many, two or more; one device each.
        distributed_type: How they share the work, as accelerate calls it.
        fsdp_config: Of accelerate's configuration; empty where PyTorch does not shard.
        deepspeed_config: DeepSpeed's configuration; empty where it is not used.
    """

    n_processes: int
    distributed_type: str
    fsdp_config: Mapping[str, Any] = field(default_factory=dict)
    deepspeed_config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_for_accelerators(self) -> bool:
        """Whether accelerate does not do it on a CPU, unless it is made to."""
        return self.distributed_type in _ON_ACCELERATORS

    @property
    def fsdp_version(self) -> int | None:
        """Which FSDP is to shard; None when none is."""
        version = self.fsdp_config.get("fsdp_version")
        return None if version is None else int(version)

    @property
    def zero_stage(self) -> int | None:
        """DeepSpeed's stage; None when it is not used."""
        stage = self.deepspeed_config.get("zero_optimization", {}).get("stage")
        return None if stage is None else int(stage)

    @property
    def shards_weights(self) -> bool:
        """Whether each process is to hold a part of the weights only."""
        return self.fsdp_version is not None or (self.zero_stage or 0) >= 3

    @property
    def shards_optimizer(self) -> bool:
        """Whether each process is to hold a part of the optimizer's state only."""
        return self.fsdp_version is not None or (self.zero_stage or 0) >= 1


def plan_of(launch: Mapping[str, Any]) -> Plan | None:
    """Return what the launch seam asks for; None for a single process.

    Raises:
        ConfigError: If it holds what nothing reads, or says two things at once.
    """
    unknown = sorted(set(launch) - set(_KEYS))
    if unknown:
        raise ConfigError(
            f"settings.launch has no {', '.join(unknown)}; it takes {', '.join(_KEYS)} (conf/README.md)"
        )
    n_processes = launch.get("processes", 1)
    if not isinstance(n_processes, int) or n_processes < 1:
        raise ConfigError(f"settings.launch.processes must be a number from 1 on, got {n_processes!r}")
    if n_processes == 1:
        return None
    if "distributed_type" not in launch:
        raise ConfigError("settings.launch of several processes needs a distributed_type: MULTI_GPU, say")
    return Plan(
        n_processes=n_processes,
        distributed_type=str(launch["distributed_type"]),
        fsdp_config=launch.get("fsdp_config") or {},
        deepspeed_config=launch.get("deepspeed_config") or {},
    )


def simulates(plan: Plan | None, *, simulates_devices: bool) -> bool:
    """Tell whether accelerate must be made to take a CPU for an accelerator.

    Args:
        plan: The trial's processes; None for a single one.
        simulates_devices: `launch.simulates_devices`, and the trial computes on a CPU.
    """
    return plan is not None and plan.is_for_accelerators and simulates_devices
