"""What files for the official Hydra Optuna plugin say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fake_launcher import Outcome
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from hydra_plugins.pareto_sweeper._chosen import ChosenSweeper
from hydra_plugins.pareto_sweeper._official import translated
from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.search.parameter import Parameter

Run = Callable[..., Outcome]
OFFICIAL = "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper"
OURS = "hydra_plugins.pareto_sweeper.sweeper.ParetoSweeper"
# hydra-optuna-sweeper==1.3.0, as its node of hydra/sweeper/sampler=tpe has it
TPE = {
    "_target_": "optuna.samplers.TPESampler",
    "seed": 123,
    "consider_prior": True,
    "prior_weight": 1.0,
    "consider_magic_clip": True,
    "consider_endpoints": False,
    "n_startup_trials": 2,
    "n_ei_candidates": 24,
    "multivariate": False,
    "warn_independent_sampling": True,
}


def task(number: int, values: Mapping[str, Any]) -> float:
    return float(values["x"])


@pytest.mark.parametrize(
    "sampler",
    [
        TPE,
        # 1.4.0rc3 leaves to Optuna what has become optional
        {**TPE, "consider_prior": None, "prior_weight": None, "warn_independent_sampling": None},
        {
            "_target_": "optuna.samplers.NSGAIISampler",
            "population_size": 4,
            "mutation_prob": None,
            "constraints_func": None,
        },
        {"_target_": "optuna.samplers.RandomSampler", "seed": 1},
        {"_target_": "optuna.samplers.GridSampler", "_partial_": True},
        {"_target_": "optuna.samplers.QMCSampler", "qmc_type": "halton", "independent_sampler": None},
    ],
)
def test_samplers_are_made_of_the_official_plugins_nodes(run_sweep: Run, sampler: dict[str, Any]) -> None:
    outcome = run_sweep(["x=range(0,20)"], task, config={"x": 0}, sampler=sampler, n_trials=6)

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.results) == 6


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ({"_target_": "optuna.samplers.CmaEsSampler"}, "must be one of"),
        ({**TPE, "gamma": 3}, "it does not take gamma"),
    ],
)
def test_a_sampler_that_is_not_on_offer_is_answered_with_those_that_are(
    run_sweep: Run, sampler: dict[str, Any], message: str
) -> None:
    outcome = run_sweep(["x=1,2"], task, config={"x": 0}, sampler=sampler)

    assert outcome.exit_code == 2
    assert message in outcome.stderr


@pytest.mark.parametrize(
    ("sampler", "arguments"),
    [
        ("tpe", [name for name in TPE if not name.startswith("_")]),
        ("nsgaii", ["seed", "population_size", "mutation_prob", "crossover_prob", "swapping_prob"]),
        ("random", ["seed"]),
        ("gp", ["seed", "n_startup_trials", "deterministic_objective"]),
        ("qmc", ["seed", "qmc_type", "scramble"]),
    ],
)
def test_arguments_of_a_chosen_sampler_are_typed_without_a_plus_sign(
    sampler: str, arguments: list[str]
) -> None:
    from hydra.core.config_store import ConfigStore

    node = ConfigStore.instance().load(f"hydra/sweeper/sampler/{sampler}.yaml").node

    assert set(arguments) <= set(node)


def distribution(node: Any) -> Parameter:
    problems: list[str] = []
    data = translated({"params": None, "search_space": {"x": node}}, problems)
    assert problems == []
    assert "search_space" not in data
    return searched(OverridesParser.create().parse_override(f"x={data['params']['x']}"), seed=0)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "int", "low": 1, "high": 8}, IntDistribution(1, 8)),
        ({"type": "int", "low": 1, "high": 9, "step": 2}, IntDistribution(1, 9, step=2)),
        ({"type": "int", "low": 1, "high": 64, "log": True}, IntDistribution(1, 64, log=True)),
        ({"type": "int", "low": 0, "high": 10**6}, IntDistribution(0, 10**6)),
        ({"type": "float", "low": 0, "high": 1, "step": 0.25}, FloatDistribution(0.0, 1.0, step=0.25)),
        (
            {"type": "categorical", "choices": ["1", 1, None]},
            CategoricalDistribution(("'1'", "1", "null")),
        ),
    ],
)
def test_the_old_form_of_a_distribution_keeps_its_ends(node: Any, expected: Any) -> None:
    assert distribution(node).distribution == expected


@pytest.mark.parametrize("log", [True, False])
def test_the_old_form_of_an_interval_is_an_interval(log: bool) -> None:
    found: Any = distribution({"type": "float", "low": 1e-5, "high": 1, "log": log}).distribution

    assert isinstance(found, FloatDistribution)
    assert (found.low, found.high, found.log) == (1e-5, pytest.approx(1.0), log)


def test_all_that_has_no_translation_is_said_at_once() -> None:
    problems: list[str] = []
    raw = {
        "params": {},
        "search_space": {
            "a": 3,
            "b": {"type": "categorical"},
            "c": {"type": "int", "low": 1},
            "d": {"type": "x"},
        },
        "storage": {"_target_": "optuna.storages.RDBStorage", "url": "sqlite:///mine.db"},
    }
    translated(raw, problems)

    assert len(problems) == 5
    assert "type hydra.sweeper.storage=sqlite:///mine.db" in problems[-1]


def test_two_words_for_the_space_are_refused() -> None:
    problems: list[str] = []
    translated(
        {"params": {"x": "1,2"}, "search_space": {"x": {"type": "int", "low": 1, "high": 2}}}, problems
    )

    assert "keep params" in problems[0]


def test_an_old_file_is_swept(run_sweep: Run) -> None:
    space = {"x": {"type": "int", "low": 1, "high": 3}}
    outcome = run_sweep([], task, config={"x": 0}, search_space=space, params=None, sampler="grid")

    assert outcome.overrides == [["x=1"], ["x=2"], ["x=3"]]


def config_of(choice: str, target: str) -> DictConfig:
    config = OmegaConf.create(
        {
            "hydra": {
                "sweeper": {"_target_": target},
                "runtime": {"choices": {"hydra/sweeper": choice}},
                "overrides": {"hydra": []},
            }
        }
    )
    OmegaConf.set_readonly(config, True)
    return config


@pytest.mark.parametrize(
    ("choice", "target", "expected"),
    [("pareto", OFFICIAL, OURS), ("optuna", OFFICIAL, OFFICIAL), ("pareto", "mine.Sweeper", "mine.Sweeper")],
)
def test_the_chosen_sweeper_wins_over_the_official_plugins_class(
    choice: str, target: str, expected: str
) -> None:
    config = config_of(choice, target)
    ChosenSweeper().on_multirun_start(config)

    assert config.hydra.sweeper._target_ == expected
