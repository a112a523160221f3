"""Which variables a trial's process gets, and from whom."""

from __future__ import annotations

from typing import Any

import pytest

from memsweep.config.schema import (
    BudgetConfig,
    DataKind,
    DatasetConfig,
    DatasetSource,
    LaunchConfig,
    MeasureConfig,
    ModelConfig,
    ModelSource,
    RewardConfig,
    TrainerConfig,
    TrialConfig,
)
from memsweep.errors import ConfigError, TwoOwners
from memsweep.machine import Device, n_cores
from memsweep.technique.settings import Settings
from memsweep.trial.environment import trial_environment
from memsweep.trial.lease import Lease
from memsweep.trial.variables import early, hides_devices, template_environment, template_key

LAUNCH = ("device", "threads", "environment", "simulates_devices")
TWO = Settings(launch={"processes": 2, "distributed_type": "MULTI_GPU"})


def config(**facts: Any) -> TrialConfig:
    launch = {"name": "local", "device": Device.AUTO, "threads": 0, "timeout_seconds": 60.0}
    launch |= {name: facts.pop(name) for name in LAUNCH if name in facts}
    parts: dict[str, Any] = {
        "trainer": TrainerConfig(name="sft", data=DataKind.PROMPT_COMPLETION, batch=8),
        "model": ModelConfig(name="tiny", source=ModelSource.GEOMETRY, geometry={"model_type": "qwen2"}),
        "dataset": DatasetConfig(name="embedded", source=DatasetSource.EMBEDDED),
        "reward": RewardConfig(name="length"),
        "technique": {},
        "measure": MeasureConfig(
            name="quick",
            probe_examples=1,
            precision=0.1,
            min_passes=2,
            max_passes=2,
            max_seconds=1,
        ),
        "budget": BudgetConfig(name="unlimited"),
        "launch": LaunchConfig(**launch),  # type: ignore[arg-type]
    }
    return TrialConfig(**parts | facts)


def test_the_callers_environment_is_all_there() -> None:
    assert trial_environment(config(), Settings(), {"HOME": "/root"})["HOME"] == "/root"


def test_what_is_needed_for_one_thread_is_there_and_gives_way_to_the_caller() -> None:
    ours = trial_environment(config(), Settings(), {})
    theirs = trial_environment(config(), Settings(), {"OPENBLAS_NUM_THREADS": "2"})

    assert ours["OPENBLAS_NUM_THREADS"] == "1"
    assert ours["JE_ARROW_MALLOC_CONF"] == "background_thread:false"
    assert theirs["OPENBLAS_NUM_THREADS"] == "2"


def test_threads_are_one_per_core_unless_somebody_says_otherwise() -> None:
    untold = trial_environment(config(), Settings(), {})
    caller = trial_environment(config(), Settings(), {"OMP_NUM_THREADS": "7"})
    launch = trial_environment(config(threads=3), Settings(), {"OMP_NUM_THREADS": "7"})

    assert untold["OMP_NUM_THREADS"] == str(n_cores())
    assert caller["OMP_NUM_THREADS"] == "7"
    assert (launch["OMP_NUM_THREADS"], launch["MKL_NUM_THREADS"]) == ("3", "3")


def test_with_a_part_of_the_machine_threads_are_one_for_each_of_its_cores() -> None:
    lease = Lease(n_slots=2, cores=(4, 5, 6), devices=("1",))
    whole_machine = {"OMP_NUM_THREADS": "7", "CUDA_VISIBLE_DEVICES": "0,1"}
    untold = trial_environment(config(), Settings(), whole_machine, lease)
    launch = trial_environment(config(threads=2), Settings(), whole_machine, lease)

    assert (untold["OMP_NUM_THREADS"], untold["MKL_NUM_THREADS"]) == ("3", "3")
    assert launch["OMP_NUM_THREADS"] == "2"
    assert untold["CUDA_VISIBLE_DEVICES"] == "1"


def test_several_processes_share_out_the_threads_that_one_would_have() -> None:
    trial = config(device=Device.CPU, simulates_devices=True)
    share = Lease(n_slots=2, cores=(0, 1, 2, 3, 4, 5))

    def threads(lease: Lease | None, asked: TrialConfig = trial) -> str:
        return trial_environment(asked, TWO, {"OMP_NUM_THREADS": "7"}, lease)["OMP_NUM_THREADS"]

    assert threads(share) == "3"
    assert threads(None) == str(max(1, n_cores() // 2))
    assert threads(share, config(device=Device.CPU, simulates_devices=True, threads=5)) == "5"


def test_several_processes_on_a_cpu_are_refused_unless_they_may_stand_in_for_devices() -> None:
    with pytest.raises(ConfigError, match="launch=cpu_simulated lets processes on a CPU stand in"):
        trial_environment(config(device=Device.CPU), TWO, {})


def test_more_processes_than_devices_are_refused_with_how_many_there_are() -> None:
    trial = config(device=Device.CUDA)

    with pytest.raises(ConfigError, match="a trial sees 1; ask for 1 of them"):
        trial_environment(trial, TWO, {"CUDA_VISIBLE_DEVICES": "0"})
    assert trial_environment(trial, TWO, {"CUDA_VISIBLE_DEVICES": "0,1"})["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_a_trial_sees_one_device_for_each_of_its_processes() -> None:
    trial, four = config(device=Device.CUDA), {"CUDA_VISIBLE_DEVICES": "3,1,GPU-a,0"}

    def seen(settings: Settings, **facts: bool) -> str:
        return trial_environment(trial, settings, four, **facts)["CUDA_VISIBLE_DEVICES"]

    assert seen(Settings()) == "3"
    assert seen(TWO) == "3,1"
    assert seen(Settings(), sees_all=True) == "3,1,GPU-a,0"


def test_a_part_of_the_devices_holds_whoever_names_them_and_shows_none_to_a_trial_on_the_cpu() -> None:
    lease = Lease(n_slots=2, cores=(0,), devices=("1",))
    named = config(environment={"CUDA_VISIBLE_DEVICES": "0,1"})

    assert trial_environment(named, Settings(), {}, lease)["CUDA_VISIBLE_DEVICES"] == "1"
    assert trial_environment(config(device=Device.CPU), Settings(), {}, lease)["CUDA_VISIBLE_DEVICES"] == ""


def test_a_trial_on_the_cpu_sees_no_device() -> None:
    base = {"CUDA_VISIBLE_DEVICES": "0"}

    assert trial_environment(config(), Settings(), base)["CUDA_VISIBLE_DEVICES"] == "0"
    assert trial_environment(config(device=Device.CPU), Settings(), base)["CUDA_VISIBLE_DEVICES"] == ""


def test_libraries_stay_offline_unless_something_comes_from_the_hub() -> None:
    hub = ModelConfig(name="organization/model", source=ModelSource.HUB)

    assert trial_environment(config(), Settings(), {})["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in trial_environment(config(model=hub), Settings(), {})
    assert trial_environment(config(), Settings(), {"HF_HUB_OFFLINE": "0"})["HF_HUB_OFFLINE"] == "0"


def test_the_launch_wins_over_the_caller_and_a_technique_too() -> None:
    base = {"A": "caller", "B": "caller"}
    found = trial_environment(
        config(environment={"A": "launch"}), Settings(environment={"B": "technique"}), base
    )

    assert (found["A"], found["B"]) == ("launch", "technique")


def test_a_technique_and_the_launch_may_not_disagree() -> None:
    with pytest.raises(TwoOwners, match=r"launch\.environment\.A='1' and a technique, which sets '2'"):
        trial_environment(config(environment={"A": "1"}), Settings(environment={"A": "2"}), {})


def test_a_technique_for_the_allocator_is_not_undone_by_the_variables_other_name() -> None:
    technique = Settings(environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
    found = trial_environment(config(), technique, {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"})

    assert found["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert "PYTORCH_CUDA_ALLOC_CONF" not in found


@pytest.mark.parametrize(
    ("name", "is_early"),
    [
        ("MALLOC_ARENA_MAX", True),
        ("GLIBC_TUNABLES", True),
        ("LD_PRELOAD", True),
        ("OMP_NUM_THREADS", True),
        ("HF_HUB_OFFLINE", True),
        ("PYTHONHASHSEED", True),
        ("DS_ACCELERATOR", True),
        ("ANYTHING_ELSE", True),
        ("PYTORCH_ALLOC_CONF", False),
        ("PYTORCH_CUDA_ALLOC_CONF", False),
        ("CUDA_VISIBLE_DEVICES", False),
        ("MEMSWEEP_CONF", False),
    ],
)
def test_only_what_is_read_late_may_be_set_late(name: str, is_early: bool) -> None:
    assert (name in early({name: "1"})) == is_early
    assert (template_key({name: "1"}) != template_key({})) == is_early


@pytest.mark.parametrize(("value", "hides"), [("", True), (" ", True), ("-1", True), ("0", False)])
def test_devices_are_hidden_by_an_empty_list_or_minus_one(value: str, hides: bool) -> None:
    assert hides_devices({"CUDA_VISIBLE_DEVICES": value}) == hides
    assert not hides_devices({})


def test_a_template_starts_with_what_is_early_the_devices_and_its_mark() -> None:
    environment = {
        "HOME": "/root",
        "CUDA_VISIBLE_DEVICES": "1",
        "PYTORCH_ALLOC_CONF": "a",
        "MEMSWEEP_CONF": "c",
    }

    assert template_environment(environment, "mark") == {
        "HOME": "/root",
        "CUDA_VISIBLE_DEVICES": "1",
        "MEMSWEEP_TEMPLATE": "mark",
    }
