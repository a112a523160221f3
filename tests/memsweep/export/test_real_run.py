from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsweep.errors import ConfigError
from memsweep.export.real_run import differences, model_keywords, trainer_arguments, withheld
from memsweep.trainers.build import RECIPES, recipe_of
from tiny import COMPLETION_TOKENS, tiny_config


@pytest.fixture
def arguments(choose: Any, tmp_path: Path) -> Any:
    """A function that returns the exported arguments of a tiny trial."""

    def of(*asked: Any, **facts: Any) -> dict[str, Any]:
        chosen = choose(*asked, **facts)
        return trainer_arguments(chosen, recipe_of(chosen.config.trainer.name), tmp_path)

    return of


@pytest.mark.parametrize("trainer", RECIPES)
def test_every_trainer_takes_what_is_exported(trainer: str, arguments: Any, tmp_path: Path) -> None:
    values = {**arguments(trainer), "output_dir": str(tmp_path)}

    made = RECIPES[trainer].config_class(**values)
    assert (made.num_train_epochs, made.max_steps, made.use_cpu) == (1, -1, True)
    assert made.save_strategy != "no"


def test_what_a_technique_sets_is_exported_under_the_name_that_the_class_has(arguments: Any) -> None:
    values = arguments(
        options={"checkpointing": "every_n_layers"}, parameters={"technique.checkpointing.n": 2}
    )

    assert values["activation_checkpointing"] is True
    assert values["activation_checkpointing_kwargs"] == {"every_n_layers": 2}
    assert "gradient_checkpointing" not in values


def test_a_micro_batch_comes_with_its_accumulation(arguments: Any) -> None:
    values = arguments(options={"micro_batch": "size"}, parameters={"technique.micro_batch.size": 2})

    assert (values["per_device_train_batch_size"], values["gradient_accumulation_steps"]) == (2, 2)


def test_a_completion_may_end_but_has_the_room_it_was_measured_with(arguments: Any) -> None:
    values = arguments("grpo")

    assert values["max_completion_length"] == COMPLETION_TOKENS
    assert "generation_kwargs" not in values


def test_the_model_is_loaded_in_the_type_that_was_in_force(choose: Any) -> None:
    plain, asked = choose(), choose(options={"precision": "bf16_weights"})

    assert model_keywords(plain, recipe_of("sft"))["dtype"] == "float32"
    assert model_keywords(asked, recipe_of("sft"))["dtype"] == "bfloat16"


def test_quantization_is_no_keyword_of_the_model(choose: Any) -> None:
    chosen = choose(options={"quantization": "nf4", "adapter": "lora"})

    assert "quantization" not in model_keywords(chosen, recipe_of("sft"))


def test_a_trial_whose_files_contradict_each_other_is_refused(choose: Any, tmp_path: Path) -> None:
    chosen = choose(options={"optimizer": "adafactor"})
    effective = {**chosen.effective}
    effective["trainer"] = {"arguments": {**chosen.in_force, "optim": "sgd"}}

    with pytest.raises(ConfigError, match=r"optim='adafactor', and 'sgd' was in force.*Measure it again"):
        trainer_arguments(replace(chosen, effective=effective), recipe_of("sft"), tmp_path)


def test_a_secret_among_the_arguments_stays_here(choose: Any, tmp_path: Path) -> None:
    config = tiny_config(arguments={"hub_token": "abc123", "learning_rate": 0.5})
    chosen = choose(config=config)
    values = trainer_arguments(chosen, recipe_of("sft"), tmp_path)

    assert values["learning_rate"] == 0.5
    assert "abc123" not in str(values)
    assert withheld(chosen, recipe_of("sft")) == ("hub_token",)


def test_a_template_is_named_from_the_folder(
    choose: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("template.jinja").write_text("{{ messages }}", encoding="utf-8")
    chosen = choose(config=tiny_config(arguments={"chat_template_path": "template.jinja"}))

    values = trainer_arguments(chosen, recipe_of("sft"), tmp_path / "there")
    assert values["chat_template_path"] == "../template.jinja"


def test_what_is_not_as_in_the_trial_is_what_the_trainer_has_and_nobody_asked_for(choose: Any) -> None:
    plain = differences(choose(), recipe_of("sft"))
    asked = differences(choose(config=tiny_config(arguments={"disable_tqdm": True})), recipe_of("sft"))

    assert not {"generation_kwargs", "shuffle_dataset"} & set(plain)
    assert set(plain) - set(asked) == {"disable_tqdm"}
    assert "generation_kwargs" in differences(choose("grpo"), recipe_of("grpo"))
