"""Can `trl <trainer> --config config.yaml` say it, and how?

TRL's command knows one kind of adapter with some of its fields, and quantization with some of its; it makes
its own tokenizer, and there is none for experimental trainers.  What it cannot say is a reason for a script.
Source: trl==1.16.0 trainer/model_config.py, trainer/utils.py get_peft_config, get_quantization_config.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from peft import LoraConfig

# Field of PEFT's config to field of the command.
_ADAPTER = {
    "r": "lora_r",
    "lora_alpha": "lora_alpha",
    "lora_dropout": "lora_dropout",
    "target_modules": "lora_target_modules",
    "target_parameters": "lora_target_parameters",
    "modules_to_save": "lora_modules_to_save",
    "task_type": "lora_task_type",
    "use_rslora": "use_rslora",
    "use_dora": "use_dora",
}
_ALWAYS = ("r", "lora_alpha", "lora_dropout", "task_type")  # where the command's own defaults are not PEFT's

# Setting of BitsAndBytesConfig to field of the command.
_QUANTIZATION = {
    "load_in_4bit": "load_in_4bit",
    "load_in_8bit": "load_in_8bit",
    "bnb_4bit_quant_type": "bnb_4bit_quant_type",
    "bnb_4bit_use_double_quant": "use_bnb_nested_quant",
    "bnb_4bit_quant_storage": "bnb_4bit_quant_storage",
}
_COMPUTE = "bnb_4bit_compute_dtype"

# Keywords of `from_pretrained` that are fields of the command.
_MODEL = ("dtype", "attn_implementation")


def has_command(trainer: str) -> bool:
    """Tell whether the installed TRL has a command for a trainer."""
    return find_spec(f"trl.scripts.{trainer}") is not None


def model_fields(keywords: Mapping[str, Any], name: str, revision: str | None) -> dict[str, Any]:
    """Return the command's fields for a model and the keywords that it is loaded with."""
    rest = {key: value for key, value in keywords.items() if key not in _MODEL}
    return {
        "model_name_or_path": name,
        **({"model_revision": revision} if revision is not None else {}),
        **{key: keywords[key] for key in _MODEL if key in keywords},
        **({"model_init_kwargs": rest} if rest else {}),
    }


def adapter_fields(config: Any | None) -> tuple[dict[str, Any], str]:
    """Return the command's fields for an adapter, and why it has none; one of the two is empty.

    Args:
        config: PEFT's config; None when the whole model is trained.
    """
    if config is None:
        return {}, ""
    if type(config) is not LoraConfig:
        return {}, f"it knows no adapter but LoRA, and this is {type(config).__name__}"
    usual = LoraConfig(task_type=config.task_type)
    changed = {
        entry.name: value
        for entry in dataclasses.fields(config)
        if (value := getattr(config, entry.name)) != getattr(usual, entry.name)
    }
    unknown = sorted(set(changed) - set(_ADAPTER))
    if unknown:
        return {}, f"it has no field for {', '.join(unknown)} of {type(config).__name__}"
    wanted = {name: getattr(config, name) for name in (*_ALWAYS, *changed)}
    return {"use_peft": True, **{_ADAPTER[name]: _listed(value) for name, value in wanted.items()}}, ""


def quantization_fields(settings: Mapping[str, Any] | None, dtype: Any) -> tuple[dict[str, Any], str]:
    """Return the command's fields for quantization, and why it has none; one of the two is empty.

    Args:
        settings: Of `BitsAndBytesConfig`; None or empty when nothing is quantized.
        dtype: The number type of the model's other weights.
    """
    if not settings:
        return {}, ""
    unknown = sorted(set(settings) - set(_QUANTIZATION) - {_COMPUTE})
    if unknown:
        return {}, f"it has no field for {', '.join(unknown)} of BitsAndBytesConfig"
    compute = str(settings.get(_COMPUTE, "float32"))
    if settings.get("load_in_4bit") and compute != str(dtype):
        return {}, (
            f"it multiplies 4-bit weights in the type of the others, which is {dtype}, and this does in "
            f"{compute}"
        )
    found = {_QUANTIZATION[name]: value for name, value in settings.items() if name in _QUANTIZATION}
    if settings.get("load_in_4bit"):
        found.setdefault("bnb_4bit_quant_type", "fp4")  # the default of BitsAndBytesConfig, not the command's
    return found, ""


def data_fields(path: str, data_files: Any, split: str, columns: list[str] | None) -> dict[str, Any]:
    """Return the command's fields for the data."""
    entry = {"path": path, "data_files": data_files, "split": split, "columns": columns}
    return {"datasets": [{key: value for key, value in entry.items() if value is not None}]}


def _listed(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else value
