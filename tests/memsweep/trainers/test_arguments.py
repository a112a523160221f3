from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from memsweep.config.schema import TrialConfig
from memsweep.errors import ConfigError
from memsweep.machine import Device
from memsweep.technique.settings import Settings
from memsweep.trainers.arguments import (
    longer,
    micro_batches,
    prompt_room,
    quantization_config,
    training_arguments,
)
from memsweep.trainers.build import RECIPES, recipe_of
from memsweep.trainers.recipe import TrialRequest
from tiny import tiny_config

MICRO = "per_device_train_batch_size"


def test_without_a_micro_batch_a_step_is_one_forward() -> None:
    assert micro_batches(8, {}) == (8, 1)


def test_a_micro_batch_is_made_up_by_accumulation() -> None:
    assert micro_batches(8, {MICRO: 2}) == (2, 4)


def test_a_micro_batch_that_does_not_divide_the_batch_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"not a multiple of the micro-batch 3: choose one of 1, 2, 4, 8"):
        micro_batches(8, {MICRO: 3})


def test_accumulation_that_changes_the_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match="changes the batch"):
        micro_batches(8, {MICRO: 2, "gradient_accumulation_steps": 8})


def test_processes_share_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")

    assert micro_batches(8, {}) == (4, 1)
    assert micro_batches(8, {MICRO: 2}) == (2, 2)


def test_a_batch_that_cannot_be_shared_out_is_refused_with_what_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")

    with pytest.raises(ConfigError, match="make it a multiple of 3, or take 1, 2, 4 of them"):
        micro_batches(4, {})


@pytest.mark.parametrize("trainer", RECIPES)
def test_every_trainer_gets_the_same_order_and_saves_nothing(trainer: str, tmp_path: Path) -> None:
    arguments, _ = training_arguments(recipe_of(trainer), _request(tiny_config(trainer), tmp_path))

    assert arguments.train_sampling_strategy == "sequential"
    assert getattr(arguments, "shuffle_dataset", False) is False
    assert arguments.save_strategy == "no"
    assert arguments.use_cpu is True


@pytest.mark.parametrize("trainer", RECIPES)
def test_no_warning_about_a_deprecated_name_is_of_our_making(trainer: str, tmp_path: Path) -> None:
    settings = Settings(trainer={"activation_checkpointing|gradient_checkpointing": False})
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        for chosen in (Settings(), settings):
            training_arguments(recipe_of(trainer), _request(tiny_config(trainer), tmp_path, chosen))


def test_checkpointing_is_on_when_nothing_is_asked(tmp_path: Path) -> None:
    arguments, _ = training_arguments(recipe_of("sft"), _request(tiny_config(), tmp_path))

    assert arguments.gradient_checkpointing is True


def test_a_technique_wins_over_the_study(tmp_path: Path) -> None:
    config = tiny_config(arguments={"max_length": 512})

    arguments, asked = training_arguments(
        recipe_of("sft"), _request(config, tmp_path, Settings(trainer={"max_length": 64}))
    )

    assert arguments.max_length == asked["max_length"] == 64


def test_what_decides_the_work_cannot_be_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_steps, seed cannot be set"):
        training_arguments(
            recipe_of("sft"), _request(tiny_config(arguments={"max_steps": 3, "seed": 1}), tmp_path)
        )


@pytest.mark.parametrize(
    ("trainer", "field"),
    [("grpo", "max_completion_length"), ("rloo", "max_completion_length"), ("online_dpo", "max_new_tokens")],
)
def test_completions_have_exactly_their_budget(trainer: str, field: str, tmp_path: Path) -> None:
    arguments, _ = training_arguments(recipe_of(trainer), _request(tiny_config(trainer), tmp_path))

    assert getattr(arguments, field) == 8
    assert arguments.generation_kwargs == {"min_new_tokens": 8}


@pytest.mark.parametrize(
    ("trainer", "field"),
    [("grpo", "max_completion_length"), ("rloo", "max_completion_length"), ("online_dpo", "max_new_tokens")],
)
def test_a_technique_that_sets_their_length_sets_the_least_too(
    trainer: str, field: str, tmp_path: Path
) -> None:
    request = _request(tiny_config(trainer), tmp_path, Settings(trainer={field: 5}))

    arguments, asked = training_arguments(recipe_of(trainer), request)

    assert getattr(arguments, field) == asked[field] == 5
    assert arguments.generation_kwargs == {"min_new_tokens": 5}


def test_an_evaluated_batch_holds_whole_groups_of_completions(tmp_path: Path) -> None:
    config = tiny_config("grpo", batch=6, examples=4, arguments={"num_generations": 3})

    arguments, _ = training_arguments(recipe_of("grpo"), _request(config, tmp_path))

    assert arguments.per_device_eval_batch_size == 6


@pytest.mark.parametrize(("max_length", "room"), [(16, 8), (None, None)])
def test_the_room_of_a_prompt_is_what_a_completion_leaves(
    max_length: int | None, room: int | None, tmp_path: Path
) -> None:
    recipe = recipe_of("online_dpo")
    arguments, _ = training_arguments(recipe, _request(tiny_config("online_dpo"), tmp_path))
    arguments.max_length = max_length

    assert prompt_room(recipe, arguments) == room
    assert prompt_room(recipe_of("grpo"), arguments) is None


def test_a_length_without_room_for_a_prompt_is_refused(tmp_path: Path) -> None:
    request = _request(tiny_config("online_dpo"), tmp_path, Settings(trainer={"max_length": 8}))

    with pytest.raises(ConfigError, match=r"no token of a prompt beside a completion of 8") as error:
        training_arguments(recipe_of("online_dpo"), request)
    assert str(error.value).endswith(
        "type technique/truncation=max_length technique.truncation.max_length=16, "
        "or lower trainer.completion_tokens"
    )


def test_a_limit_is_raised_where_it_was_set() -> None:
    option = "technique/truncation=max_length technique.truncation.max_length=32"

    assert longer({}, 32) == option
    assert longer({"max_length": 16}, 32) == "trainer.arguments.max_length=32"


def test_a_batch_that_splits_a_group_of_completions_is_refused(tmp_path: Path) -> None:
    config = tiny_config("grpo", batch=4, arguments={"num_generations": 4})
    refused = replace(config, trainer=replace(config.trainer, batch=6))

    with pytest.raises((ConfigError, ValueError), match="num_generations"):
        training_arguments(recipe_of("grpo"), _request(refused, tmp_path))


def test_an_unknown_way_to_quantize_is_refused(tmp_path: Path) -> None:
    request = _request(tiny_config(), tmp_path, Settings(model={"quantization": {"load_in_3bit": True}}))

    with pytest.raises(ConfigError, match=r"BitsAndBytesConfig has no load_in_3bit; it has .*load_in_4bit"):
        quantization_config(request)


def test_a_revision_goes_to_the_model(tmp_path: Path) -> None:
    request = replace(_request(tiny_config(), tmp_path, Settings(model={"dtype": "bfloat16"})), revision="v2")

    arguments, _ = training_arguments(recipe_of("sft"), request)

    assert arguments.model_init_kwargs == {"dtype": "bfloat16", "revision": "v2"}


def _request(config: TrialConfig, folder: Path, settings: Settings | None = None) -> TrialRequest:
    rows: list[dict[str, Any]] = [{"text": "x"}] * config.measure.probe_examples
    return TrialRequest(
        config=config,
        settings=settings or Settings(),
        device=Device.CPU,
        model="nowhere",
        revision=None,
        tokenizer=None,
        data=Dataset.from_list(rows),
        folder=folder,
    )
