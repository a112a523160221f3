"""What a request comes to in an app of techniques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydra_plugins.pareto_sweeper._app import TechniqueApp
from memsweep.search.verdict import Request
from memsweep.technique.catalogue import read_catalogue

CATALOGUE = read_catalogue(Path(__file__).resolve().parents[2] / "conf")
SYNCED = {"reference": "sync"}
APART = {"packing": "bfd", "evaluation_packing": "disabled"}


def broken(composed: dict[str, Any], options: dict[str, str], **searched: Any) -> int:
    app = TechniqueApp(CATALOGUE, {"technique": {}, "launch": {"device": "cpu"}, **composed})
    groups = {key.replace("__", "."): value for key, value in searched.items()}
    return len(app.judge(Request(options=options, parameters={}, groups=groups, rest=())).violations)


@pytest.mark.parametrize(("arguments", "expected"), [({}, 1), ({"beta": 0.0}, 1), ({"beta": 0.1}, 0)])
def test_rules_see_the_trainers_arguments(arguments: dict[str, float], expected: int) -> None:
    composed = {"trainer": {"name": "grpo", "batch": 8, "arguments": arguments}}

    assert broken(composed, SYNCED) == expected


def test_an_argument_that_is_searched_is_judged_for_each_of_its_values() -> None:
    composed = {"trainer": {"name": "grpo", "batch": 8, "arguments": {"beta": 0.1}}}

    found = [broken(composed, SYNCED, trainer__arguments__beta=beta) for beta in (0.0, 0.2)]

    assert found == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "option", "expected"),
    [({"optim": "sgd"}, "adafactor", 1), ({"optim": "sgd"}, "baseline", 0), ({}, "adafactor", 0)],
)
def test_a_field_that_the_study_and_an_option_both_set_is_refused(
    arguments: dict[str, str], option: str, expected: int
) -> None:
    composed = {"trainer": {"name": "sft", "batch": 8, "arguments": arguments}}

    assert broken(composed, {"optimizer": option}) == expected


def test_a_searched_field_that_an_option_sets_too_is_refused_for_each_of_its_values() -> None:
    composed = {"trainer": {"name": "sft", "batch": 8, "arguments": {}}}
    asked = {"checkpointing": "disabled"}

    assert broken(composed, asked, trainer__arguments__gradient_checkpointing=True) == 1
    assert broken(composed, {}, trainer__arguments__gradient_checkpointing=True) == 0


def test_rules_see_the_numbers_of_the_measure() -> None:
    composed = {"trainer": {"name": "sft", "batch": 4}, "measure": {"evaluation_examples": 0}}

    found = [broken(composed, APART, measure__evaluation_examples=n_examples) for n_examples in (0, 8)]

    assert broken(composed, APART) == 1
    assert found == [1, 0]


def test_work_that_processes_cannot_share_is_refused() -> None:
    composed = {
        "trainer": {"name": "sft", "batch": 4, "arguments": {}},
        "launch": {"device": "cpu", "simulates_devices": True},
    }
    both = {"sharding": "ddp", "micro_batch": "size"}

    def refused(options: dict[str, str], size: int = 2, **searched: Any) -> int:
        parameters = {"micro_batch": size} if "micro_batch" in options else {}
        given = {f"technique.{name}.size": value for name, value in parameters.items()}
        app = TechniqueApp(CATALOGUE, {"technique": {}, **composed})
        groups = {key.replace("__", "."): value for key, value in searched.items()}
        asked = Request(options=options, parameters=given, groups=groups, rest=())
        return len(app.judge(asked).violations)

    assert [refused(both, size) for size in (1, 2, 4)] == [0, 0, 1]
    assert refused({"sharding": "ddp"}) == 0
    assert refused({"sharding": "ddp"}, trainer__batch=3) == 1


def test_the_batch_of_one_trainer_is_not_held_against_another_that_is_searched() -> None:
    composed = {"trainer": {"name": "sft", "batch": 4, "arguments": {}}}

    assert broken(composed, {}, trainer="grpo") == 0  # groups of 8, which 4 is no multiple of
    assert broken(composed, {}, trainer="grpo", trainer__batch=4) == 1
