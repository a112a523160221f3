"""What would `accelerate launch` give a trial's processes?

The file that it takes is written into the trial's folder, with DeepSpeed's beside it, and accelerate's
launcher is asked what variables follow from it; it is not run.  So TRL sees what it sees in a training that
is started with that file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

from memsweep.ranks.plan import Plan
from memsweep.record.folder import TrialFolder, write_json, write_text

# What the launcher sets beside: threads are the trial's own, and so is where modules are found.
_PREFIXES = ("ACCELERATE_", "FSDP_")


def write_files(plan: Plan, folder: TrialFolder, *, on_cpu: bool) -> None:
    """Write what `accelerate launch --config_file` takes, and what it refers to.

    Args:
        plan: The trial's processes.
        folder: Of the trial.
        on_cpu: Accelerate is to compute on the CPU, and knows it.
    """
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": plan.distributed_type,
        "num_machines": 1,
        "num_processes": plan.n_processes,
        "use_cpu": on_cpu,
        "debug": False,
    }
    if plan.fsdp_config:
        config["fsdp_config"] = dict(plan.fsdp_config)
    if plan.deepspeed_config:
        write_json(folder.deepspeed, plan.deepspeed_config)
        config["deepspeed_config"] = {
            "deepspeed_config_file": str(folder.deepspeed),
            "zero3_init_flag": plan.shards_weights,
        }
    write_text(folder.accelerate, yaml.safe_dump(config, sort_keys=False))


def launch_variables(plan: Plan, config_file: Path) -> dict[str, str]:
    """Return the variables that all processes of a trial have in common, but for where they meet.

    Args:
        plan: The trial's processes.
        config_file: What `write_files` wrote.
    """
    asked = launch_command_parser().parse_args(["--config_file", str(config_file), "trial"])
    arguments, defaults, _ = _validate_launch_command(asked)
    arguments.main_process_port = 0  # any, and none is used: they meet elsewhere (`memsweep.ranks.meeting`)
    if plan.deepspeed_config:
        arguments.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config)
        _, environment = prepare_deepspeed_cmd_env(arguments)
    else:
        environment = prepare_multi_gpu_env(arguments)
    found = {name: value for name, value in environment.items() if name.startswith(_PREFIXES)}
    if defaults.use_cpu:
        found["ACCELERATE_USE_CPU"] = "true"
    return {
        **found,
        "WORLD_SIZE": str(plan.n_processes),
        "LOCAL_WORLD_SIZE": str(plan.n_processes),
    }


def rank_variables(rank: int) -> dict[str, str]:
    """Return the variables that one process has to itself: all are on one machine."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank)}
