"""Samplers by name, with what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from optuna.distributions import BaseDistribution
from optuna.samplers import NSGAIISampler, RandomSampler, TPESampler

from memsweep.errors import ConfigError
from memsweep.search.samplers import make_sampler, sampler_name
from memsweep.search.structured.sampler import StructuredSampler


class Nothing:
    """Offers no cell."""

    distributions: Mapping[str, BaseDistribution] = {}

    def offered(self, near: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], Sequence[int]]:
        return (), ()


NOTHING = Nothing()


def test_the_official_plugins_sub_config_is_understood() -> None:
    asked = {"_target_": "optuna.samplers.TPESampler", "seed": 3, "n_startup_trials": 5}

    assert isinstance(make_sampler(asked, 0, NOTHING), TPESampler)


def test_a_name_is_enough() -> None:
    assert isinstance(make_sampler({"name": "nsgaii"}, 0, NOTHING), NSGAIISampler)
    assert isinstance(make_sampler({"name": "random"}, 0, NOTHING), RandomSampler)


def test_auto_is_the_structured_sampler() -> None:
    assert sampler_name({"name": "auto"}) == "structured"
    assert isinstance(make_sampler({"name": "auto"}, 0, NOTHING), StructuredSampler)


def test_what_a_config_cannot_give_is_not_taken_from_it() -> None:
    with pytest.raises(ConfigError, match=r"takes cost_weight, n_startup_trials, seed; .* take prior"):
        make_sampler({"name": "structured", "prior": "os.system"}, 0, NOTHING)


def test_a_target_replaces_the_default_name() -> None:
    assert sampler_name({"name": "tpe", "_target_": "optuna.samplers.RandomSampler"}) == "random"


def test_an_unknown_sampler_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"must be one of auto, structured, tpe, nsgaii.*grid, got 'bayes'"):
        make_sampler({"name": "bayes"}, 0, NOTHING)


def test_a_target_that_is_no_sampler_is_never_imported() -> None:
    with pytest.raises(ConfigError, match=r"got 'os\.system'"):
        make_sampler({"_target_": "os.system", "command": "true"}, 0, NOTHING)


def test_an_argument_that_it_does_not_take_lists_those_it_takes() -> None:
    with pytest.raises(ConfigError, match=r"takes .*n_startup_trials.*; it does not take startup"):
        make_sampler({"name": "tpe", "startup": 3}, 0, NOTHING)


def test_an_argument_that_is_code_is_not_taken() -> None:
    with pytest.raises(ConfigError, match="does not take gamma"):
        make_sampler({"name": "tpe", "gamma": "os.system"}, 0, NOTHING)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"name": "tpe", "n_startup_trials": "few"}, "n_startup_trials must be int, got 'few'"),
        ({"name": "tpe", "n_startup_trials": True}, "n_startup_trials must be int, got True"),
        ({"name": "structured", "cost_weight": float("nan")}, "cost_weight must be 0 or more, got nan"),
        ({"name": "structured", "n_startup_trials": -1}, "n_startup_trials must be 0 or more, got -1"),
    ],
)
def test_what_a_sampler_would_stumble_over_in_the_midst_of_a_study_is_refused(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_sampler(asked, 0, NOTHING)
