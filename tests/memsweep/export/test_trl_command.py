from __future__ import annotations

from typing import Any

import pytest
from peft import IA3Config, LoraConfig
from trl import ModelConfig
from trl.trainer.utils import get_peft_config, get_quantization_config

from memsweep.export.trl_command import (
    adapter_fields,
    data_fields,
    has_command,
    model_fields,
    quantization_fields,
)
from memsweep.trainers.adapter import adapter_facts
from memsweep.trainers.build import RECIPES


def test_the_installed_library_has_no_command_for_experimental_trainers() -> None:
    assert {name for name in RECIPES if not has_command(name)} == {"online_dpo"}


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"r": 4, "lora_alpha": 32, "lora_dropout": 0.1},
        {"r": 4, "target_modules": "all-linear"},
        {"target_modules": ["q_proj", "v_proj"], "use_rslora": True},
        {"use_dora": True, "modules_to_save": ["lm_head"]},
    ],
    ids=str,
)
def test_what_the_command_makes_of_the_fields_is_the_adapter(asked: dict[str, Any]) -> None:
    config = LoraConfig(**asked, task_type="SEQ_CLS")
    fields, reason = adapter_fields(config)

    assert reason == ""
    assert adapter_facts(get_peft_config(ModelConfig(**fields))) == adapter_facts(config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (IA3Config(), "no adapter but LoRA, and this is IA3Config"),
        (LoraConfig(init_lora_weights="pissa"), "no field for init_lora_weights of LoraConfig"),
        (LoraConfig(bias="all", alpha_pattern={"q_proj": 4}), "no field for alpha_pattern, bias"),
    ],
)
def test_an_adapter_beyond_the_command_is_a_reason(config: Any, message: str) -> None:
    fields, reason = adapter_fields(config)

    assert fields == {}
    assert message in reason


def test_no_adapter_is_no_field_and_no_reason() -> None:
    assert adapter_fields(None) == ({}, "")


@pytest.mark.parametrize(
    ("settings", "dtype"),
    [
        ({"load_in_8bit": True}, "float32"),
        (
            {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": "bfloat16"},
            "bfloat16",
        ),
        ({"load_in_4bit": True}, "float32"),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "float32"),
    ],
    ids=str,
)
def test_what_the_command_makes_of_the_fields_is_the_quantization(
    settings: dict[str, Any], dtype: str
) -> None:
    from transformers import BitsAndBytesConfig

    fields, reason = quantization_fields(settings, dtype)

    assert reason == ""
    made = get_quantization_config(ModelConfig(**fields, dtype=dtype))
    assert made is not None
    assert made.to_dict() == BitsAndBytesConfig(**settings).to_dict()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bfloat16"},
            "in the type of the others, which is float32, and this does in bfloat16",
        ),
        ({"load_in_8bit": True, "llm_int8_threshold": 4.0}, "no field for llm_int8_threshold"),
    ],
)
def test_quantization_beyond_the_command_is_a_reason(settings: dict[str, Any], message: str) -> None:
    assert message in quantization_fields(settings, "float32")[1]


def test_the_models_other_keywords_go_along() -> None:
    fields = model_fields({"dtype": "float32", "use_cache": False}, "model", "v1")

    assert fields == {
        "model_name_or_path": "model",
        "model_revision": "v1",
        "dtype": "float32",
        "model_init_kwargs": {"use_cache": False},
    }


def test_data_are_named_with_what_is_known_of_them() -> None:
    assert data_fields("organization/data", None, "train", None) == {
        "datasets": [{"path": "organization/data", "split": "train"}]
    }
