from __future__ import annotations

from dataclasses import replace
from importlib.machinery import ModuleSpec

import pytest

from memsweep.machine import Device
from memsweep.technique.settings import Settings
from memsweep.trial import launch
from memsweep.trial.launch import PRELOAD, preload_of
from tiny import tiny_config

ENGINE = Settings(
    launch={
        "processes": 2,
        "distributed_type": "DEEPSPEED",
        "deepspeed_config": {"zero_optimization": {"stage": 2}},
    }
)


@pytest.mark.parametrize(
    ("device", "installed", "settings", "wanted"),
    [
        (Device.CPU, False, Settings(), ()),
        (Device.CPU, True, Settings(), ("deepspeed",)),  # accelerate would import it in every trial
        (Device.CUDA, True, Settings(), ()),
        (Device.CUDA, True, ENGINE, ("deepspeed",)),
        (Device.CPU, False, ENGINE, ("deepspeed",)),  # that it is not there is the trial's to say
    ],
)
def test_a_template_imports_what_its_trials_need(
    device: Device,
    installed: bool,
    settings: Settings,
    wanted: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda name: ModuleSpec(name, None) if installed else None)
    config = tiny_config()
    config = replace(config, launch=replace(config.launch, device=device))

    assert preload_of(config, settings) == (*PRELOAD, *wanted)
