"""`hydra.sweeper`, checked: all problems at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import Outcome
from omegaconf import OmegaConf

from hydra_plugins.pareto_sweeper._folder import check_name
from hydra_plugins.pareto_sweeper._settings import SweepSettings, read_settings
from hydra_plugins.pareto_sweeper.config import ParetoSweeperConf
from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder


def settings(**changed: Any) -> SweepSettings:
    data = OmegaConf.to_container(OmegaConf.structured(ParetoSweeperConf))
    assert isinstance(data, dict)
    raw = {str(key): value for key, value in data.items() if not str(key).startswith("_")}
    raw |= {"sampler": {"name": "tpe"}, **changed}
    return read_settings(raw, StudyFolder(Path("outputs/example")), "example")


def test_every_field_of_the_official_plugin_is_there() -> None:
    official = {
        "sampler",
        "direction",
        "storage",
        "study_name",
        "n_trials",
        "n_jobs",
        "max_failure_rate",
        "params",
        "custom_search_space",
    }

    assert official <= {field.name for field in fields(ParetoSweeperConf)}


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        settings(n_trials=0, progress="loud", objectives={"speed": "up"}, enqueue="nowhere.txt")
    message = str(error.value)

    assert "n_trials must be at least 1, got 0" in message
    assert "progress must be one of auto, live, plain, off, got 'loud'" in message
    assert "objective speed must be minimize or maximize, got 'up'" in message
    assert "there is no file nowhere.txt" in message


def test_code_named_by_a_config_is_answered_with_what_replaces_it() -> None:
    with pytest.raises(ConfigError, match=r"custom_search_space is not supported.*parameters of a technique"):
        settings(custom_search_space="package.module.function")


@pytest.mark.parametrize("direction", ["minimize", "MAXIMIZE", ["minimize", "maximize"]])
def test_a_direction_is_enough_for_objectives_without_names(direction: Any) -> None:
    found = settings(direction=direction)

    assert len(found.objectives) == (2 if isinstance(direction, list) else 1)
    assert not found.are_named


@pytest.mark.parametrize(
    "node",
    [
        {"at_most": 1},
        {"measure": "a"},
        {"measure": "a", "at_most": 1, "at_least": 0},
        3,
        {"measure": "a", "at_most": "x"},
    ],
)
def test_a_constraint_that_cannot_be_meant_is_refused(node: Any) -> None:
    with pytest.raises(ConfigError, match=r"hydra\.sweeper\.constraints\.c"):
        settings(constraints={"c": node})


def test_storage_is_in_the_studys_folder_unless_it_is_elsewhere_or_nowhere() -> None:
    assert settings().storage == "sqlite:///outputs/example/study.db"
    assert settings(storage=None).storage is None
    assert settings(storage="sqlite:///other.db").storage == "sqlite:///other.db"


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a\nb", "a\\b", "x" * 201])
def test_a_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="study_name must be"):
        check_name(name)


def test_durations_are_typed_as_numbers_or_with_units() -> None:
    typed = settings(max_seconds="1h30m", max_device_hours=2).stop

    assert (typed.max_seconds, typed.max_device_hours) == (5400, 2)
    assert settings(max_device_hours="30m").stop.max_device_hours == 0.5
    assert settings().stop.max_seconds is None


def test_stop_rules_that_cannot_be_meant_are_refused_all_at_once() -> None:
    wrong = {
        "max_seconds": "soon",
        "max_device_hours": -1,
        "stagnation": 0,
        "stagnation_tolerance": float("nan"),
        "max_failures": -1,
        "max_failure_rate": 2,
    }
    with pytest.raises(ConfigError) as error:
        settings(**wrong)
    message = str(error.value)

    assert message.count("hydra.sweeper.") == len(wrong)
    assert "hydra.sweeper.max_seconds must be a duration above 0 such as 90s, 30m" in message
    assert "hydra.sweeper.stagnation must be at least 1, got 0" in message


def test_what_the_default_sampler_takes_is_set_without_a_plus(run_sweep: Callable[..., Outcome]) -> None:
    typed = ["hydra.sweeper.sampler.cost_weight=1.0", "hydra.sweeper.sampler.n_startup_trials=2"]
    outcome = run_sweep(["x=1,2,3", *typed], lambda _, values: float(values["x"]), config={"x": 0})

    assert outcome.exit_code == 0
    assert outcome.study.sampler["cost_weight"] == 1.0
