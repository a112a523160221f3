from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands.config.config_args import load_config_from_file

from memsweep.errors import ConfigError
from memsweep.export.processes import ENGINE, accelerate_config, engine_config


def shared(choose: Any, sharding: str, device: str = "cuda:0") -> Any:
    chosen = choose(options={"sharding": sharding}) if sharding else choose()
    processes = chosen.settings.launch.get("processes", 1)
    return replace(
        chosen, effective={**chosen.effective, "launch": {"device": device, "processes": processes}}
    )


@pytest.mark.parametrize(
    ("sharding", "expected", "processes"),
    [("", "NO", 1), ("ddp", "MULTI_GPU", 2), ("fsdp2", "FSDP", 2), ("zero3", "DEEPSPEED", 2)],
)
def test_accelerate_reads_what_is_written(
    sharding: str, expected: str, processes: int, choose: Any, tmp_path: Path
) -> None:
    file = tmp_path / "accelerate.yaml"
    chosen = shared(choose, sharding)
    file.write_text(yaml.safe_dump(accelerate_config(chosen)), encoding="utf-8")

    found = load_config_from_file(str(file))
    assert (found.distributed_type, found.num_processes) == (expected, processes)


def test_an_engines_settings_are_in_a_file_that_is_named_from_the_folder(choose: Any) -> None:
    chosen = shared(choose, "zero3")

    assert accelerate_config(chosen)["deepspeed_config"] == {
        "deepspeed_config_file": ENGINE,
        "zero3_init_flag": True,
    }
    assert engine_config(chosen)["zero_optimization"]["stage"] == 3
    assert engine_config(shared(choose, "fsdp2")) == {}
    assert accelerate_config(shared(choose, "fsdp2"))["fsdp_config"]["fsdp_version"] == 2


def test_processes_that_stood_in_for_devices_are_not_exported(choose: Any) -> None:
    chosen = shared(choose, "fsdp2", device="cpu")
    launch = replace(chosen.config.launch, simulates_devices=True)
    simulated = replace(chosen, config=replace(chosen.config, launch=launch))

    with pytest.raises(ConfigError, match="stand in for devices"):
        accelerate_config(simulated)
    assert accelerate_config(shared(choose, "ddp", device="cpu"))["use_cpu"] is True


def test_one_process_is_on_the_cpu_where_its_arguments_say_so(choose: Any) -> None:
    assert accelerate_config(shared(choose, "", device="cpu"))["use_cpu"] is True
    assert accelerate_config(shared(choose, ""))["use_cpu"] is False
