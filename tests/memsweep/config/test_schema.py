from __future__ import annotations

from typing import Any

import pytest

from memsweep.config.schema import DataKind, ModelSource, TrialConfig, trial_config
from memsweep.errors import ConfigError
from memsweep.machine import Device


def composed(**changes: Any) -> dict[str, Any]:
    """Return a composed config; `trainer__batch=0` changes a value in it."""
    config: dict[str, Any] = {
        "seed": 0,
        "trainer": {"name": "sft", "data": "prompt_completion", "batch": 8},
        "model": {"name": "tiny", "source": "geometry", "geometry": {"model_type": "qwen2"}},
        "dataset": {"name": "embedded", "source": "embedded"},
        "reward": {"name": "length"},
        "technique": {"adapter": {"option": "lora", "r": 16}, "packing": {"option": "baseline"}},
        "measure": {
            "name": "quick",
            "probe_examples": 4,
            "min_passes": 2,
            "max_passes": 4,
            "max_seconds": 60,
            "precision": 0.1,
        },
        "budget": {"name": "unlimited"},
        "launch": {"name": "local", "device": "cpu", "threads": 1, "timeout_seconds": 60},
        "tracking": {"mode": "offline"},
    }
    for key, value in changes.items():
        group, _, name = key.partition("__")
        config[group] = {**config[group], name: value} if name else value
    return config


def refused(**changes: Any) -> str:
    with pytest.raises(ConfigError) as error:
        trial_config(composed(**changes))
    return str(error.value)


def test_a_composed_config_becomes_types() -> None:
    trial = trial_config(composed())

    assert isinstance(trial, TrialConfig)
    assert trial.trainer.data is DataKind.PROMPT_COMPLETION
    assert trial.model.source is ModelSource.GEOMETRY
    assert trial.launch.device is Device.CPU
    assert trial.launch.timeout_seconds == 60.0
    assert trial.technique["adapter"].option == "lora"
    assert trial.technique["adapter"].parameters == {"r": 16}


def test_every_problem_is_said_at_once() -> None:
    text = refused(trainer__batch="eight", launch__device="gpu", model={"source": "hub"}, measure__warm_up=3)

    assert text.splitlines() == [
        "trainer.batch must be int, got 'eight'",
        "model.name is missing",
        "measure.warm_up is not a setting; allowed here: name, probe_examples, precision, min_passes, "
        "max_passes, max_seconds, evaluation_examples, worst_step, repeats, front_repeats",
        "launch.device must be one of auto, cpu, cuda, got 'gpu'",
    ]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"trainer__batch": 0}, "trainer.batch must be at least 1, got 0"),
        ({"trainer__batch": True}, "trainer.batch must be int, got True"),
        ({"model__geometry": {}}, "must name a model_type"),
        ({"model": {"name": "path", "source": "path"}}, "model.path=/path/to/model"),
        ({"model": {"name": "", "source": "hub"}}, "model.name=organization/model"),
        ({"dataset": {"name": "csv", "source": "csv"}}, "dataset.path=/path/to/data.csv"),
        ({"dataset": {"name": "", "source": "hub"}}, "dataset.name=organization/data"),
        ({"measure__min_passes": 1}, "measure.min_passes must be at least 2"),
        ({"measure__min_passes": 5}, "measure.min_passes=5 exceeds measure.max_passes=4"),
        ({"measure__precision": 3}, "measure.precision must be between 0 and 1, e.g. 0.03"),
        ({"budget__memory_bytes": 0}, "budget.memory_bytes must be at least 1"),
        ({"launch__threads": -1}, "launch.threads must be at least 0"),
        ({"launch__timeout_seconds": 0}, "launch.timeout_seconds must be positive"),
        ({"launch__timeout_seconds": float("nan")}, "launch.timeout_seconds must be positive and finite"),
        ({"launch__stall_seconds": float("inf")}, "launch.stall_seconds must be positive and finite"),
        ({"launch__environment": {"A=B": "x"}}, "launch.environment has the variable 'A=B'"),
        ({"measure__max_seconds": float("nan")}, "measure.max_seconds must be positive and finite"),
        ({"trainer__completion_tokens": 0}, "trainer.completion_tokens must be at least 1, got 0"),
        ({"seed": -1}, "seed must be from 0 to 4294967295, got -1"),
        ({"seed": 2**32}, "seed must be from 0 to 4294967295"),
        ({"technique": {"adapter": {"r": 4}}}, "technique.adapter.option must be str, got None"),
        (
            {"technique": {"adapter": "lora", "packing": None}},
            "technique.adapter is a group: type technique/adapter=lora\n"
            "technique.packing is a group: type technique/packing=baseline",
        ),
        ({"reward": None}, "reward must be a mapping, got None"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_terms_of_what_is_typed(
    changes: dict[str, Any], part: str
) -> None:
    assert part in refused(**changes)


def test_a_missing_group_is_named() -> None:
    config = composed()
    del config["budget"]

    with pytest.raises(ConfigError, match="budget is missing"):
        trial_config(config)
