"""accelerate.yaml: in how many processes a set-up trains, and how they share the work.

Without such a file accelerate takes every device that it finds, and the batch grows with them.  The launch
seam speaks accelerate's own words, and they are passed on.  The number type is the
trainer's arguments' to say.
"""

from __future__ import annotations

from typing import Any

from memsweep.errors import ConfigError
from memsweep.export.chosen import Chosen
from memsweep.ranks.plan import ALONE, plan_of, simulates

ENGINE = "deepspeed.json"


def accelerate_config(chosen: Chosen) -> dict[str, Any]:
    """Return what accelerate's file says.

    Raises:
        ConfigError: If processes on a CPU stood in for devices: nothing but memsweep does that.
    """
    plan, launch = plan_of(chosen.settings.launch), chosen.config.launch
    if simulates(plan, simulates_devices=launch.simulates_devices and chosen.on_cpu):
        raise ConfigError(
            f"trial {chosen.result.number} had processes on a CPU stand in for devices "
            "(launch=cpu_simulated), which nothing else does: export a trial that was measured on devices"
        )
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": ALONE if plan is None else plan.distributed_type,
        "num_machines": 1,
        "num_processes": 1 if plan is None else plan.n_processes,
        "use_cpu": chosen.on_cpu,
    }
    if plan is not None and plan.fsdp_config:
        config["fsdp_config"] = dict(plan.fsdp_config)
    if plan is not None and plan.deepspeed_config:
        config["deepspeed_config"] = {
            "deepspeed_config_file": ENGINE,
            "zero3_init_flag": plan.shards_weights,
        }
    return config


def engine_config(chosen: Chosen) -> dict[str, Any]:
    """Return what DeepSpeed's file says; empty where DeepSpeed is not used."""
    plan = plan_of(chosen.settings.launch)
    return {} if plan is None else dict(plan.deepspeed_config)
