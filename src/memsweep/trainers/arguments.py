"""Which arguments does a trainer get?

From the least to the most particular: what keeps trials comparable and cheap (here), what the trainer needs
(its recipe), what every trial of the study gets (`trainer.arguments`), what the techniques set.  The work is
fixed: micro-batch times accumulation times processes is always `trainer.batch`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import torch
from transformers import TrainingArguments

from memsweep.errors import ConfigError
from memsweep.machine import Device, has_native_bf16
from memsweep.ranks.plan import plan_of, simulates
from memsweep.technique.work import ACCUMULATION, MICRO, uneven
from memsweep.trainers.fields import field_names, resolved
from memsweep.trainers.recipe import Recipe, TrialRequest

# What every trial has, whatever is asked: it decides how much work is done and what is recorded of it.
OURS = frozenset({"output_dir", "max_steps", "num_train_epochs", "seed", "use_cpu", "save_strategy"})


def training_arguments(recipe: Recipe, request: TrialRequest) -> tuple[TrainingArguments, dict[str, Any]]:
    """Return the trainer's arguments, and those of them that the study and the techniques asked for.

    Args:
        recipe: The trainer.
        request: The trial.

    Raises:
        ConfigError: If a setting has no field, is one of ours, or cannot be kept to the batch.
    """
    config_class = recipe.config_class
    asked = {
        **resolved(request.config.trainer.arguments, config_class),
        **resolved(request.settings.trainer, config_class),
    }
    taken = sorted(OURS & set(asked))
    if taken:
        raise ConfigError(
            f"{', '.join(taken)} cannot be set: memsweep sets it so that trials do the same work"
        )
    values = {
        **_quiet(config_class),
        **_comparable(request),
        **recipe.arguments,
        **_completions(recipe, request, asked),
    }
    known = {name: value for name, value in values.items() if name in field_names(config_class)}
    micro, accumulation = micro_batches(request.config.trainer.batch, asked)
    given = {**known, **asked, MICRO: micro, ACCUMULATION: accumulation}
    given.update(_default_precision(request.device, given)[0])
    if keywords := model_keywords(recipe, request):
        given["model_init_kwargs"] = {**(asked.get("model_init_kwargs") or {}), **keywords}
    arguments = config_class(**given)
    check_generations(recipe, request, arguments)
    check_room(recipe, arguments, request.config.trainer.arguments)
    return arguments, asked


def micro_batches(batch: int, asked: Mapping[str, Any]) -> tuple[int, int]:
    """Return the micro-batch and the accumulation steps that make `batch` examples a step.

    Args:
        batch: `trainer.batch`.
        asked: What study and techniques set; a micro-batch may be among it.

    Raises:
        ConfigError: If the micro-batch, times the processes, does not divide the batch.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    relevant = {name: int(asked[name]) for name in (MICRO, ACCUMULATION) if asked.get(name) is not None}
    problems = uneven("", batch, processes, relevant)
    if problems:
        raise ConfigError("\n".join(problems))
    micro = relevant.get(MICRO, batch // processes)
    return micro, batch // (micro * processes)


def precision_reason(request: TrialRequest, arguments: TrainingArguments) -> str:
    """Say in which precision the trial computes, and why."""
    _, reason = _default_precision(request.device, {})
    kind = "bfloat16 mixed" if arguments.bf16 else "float16 mixed" if arguments.fp16 else "as the weights are"
    return f"{kind}; when nothing is asked: {reason}"


def model_keywords(recipe: Recipe, request: TrialRequest) -> dict[str, Any]:
    """Return what `from_pretrained` is called with: the model seam, quantization aside where it has a way."""
    keywords = {name: value for name, value in request.settings.model.items() if name != "quantization"}
    if _default_precision(request.device, {})[0]:
        keywords.setdefault(
            "dtype", "float32"
        )  # a trainer of TRL's takes the file's type, which may be bfloat16
    if plan_of(request.settings.launch) is not None:
        # Each process loads the model for its own device; one trainer would have it spread over all.
        keywords.setdefault("device_map", None)
    if request.revision is not None:
        keywords["revision"] = request.revision
    if not recipe.quantization_keyword and (quantization := quantization_config(request)) is not None:
        keywords["quantization_config"] = quantization
    return keywords


def quantization_config(request: TrialRequest) -> Any | None:
    """Return how the model's weights are held, None when as they are.

    Raises:
        ConfigError: If a setting is not one of `BitsAndBytesConfig`.
    """
    from transformers import BitsAndBytesConfig

    settings = request.settings.model.get("quantization")
    if not settings:
        return None
    config = BitsAndBytesConfig()
    unknown = [name for name in settings if not hasattr(config, name)]
    if unknown:
        raise ConfigError(f"BitsAndBytesConfig has no {', '.join(unknown)}; it has {', '.join(vars(config))}")
    return BitsAndBytesConfig(**settings)


def check_generations(recipe: Recipe, request: TrialRequest, arguments: TrainingArguments) -> None:
    """Refuse a batch that does not hold whole groups of completions.

    TRL compares the completions of one prompt with each other.
    """
    if recipe.generations_field is None:
        return
    generations = getattr(arguments, recipe.generations_field)
    batch = request.config.trainer.batch
    if batch % generations:
        raise ConfigError(
            f"trainer.batch={batch} counts completions: it must be a multiple of "
            f"{recipe.generations_field}={generations}"
        )


def check_room(recipe: Recipe, arguments: TrainingArguments, study: Mapping[str, Any]) -> None:
    """Refuse a limit that leaves no token of any prompt beside its completion.

    The training pass would see completions without what they answer.
    """
    room = prompt_room(recipe, arguments)
    if room is not None and room < 1:
        tokens = getattr(arguments, str(recipe.completion_field))
        raise ConfigError(
            f"max_length={arguments.max_length} leaves no token of a prompt beside a completion of {tokens}: "
            f"type {longer(study, 2 * tokens)}, or lower trainer.completion_tokens"
        )


def longer(study: Mapping[str, Any], tokens: int) -> str:
    """Return what limits a sequence to `tokens`, as it is typed.

    Args:
        study: `trainer.arguments`: where it sets the limit, no option may set it too.
        tokens: The limit.
    """
    if "max_length" in study:
        return f"trainer.arguments.max_length={tokens}"
    return f"technique/truncation=max_length technique.truncation.max_length={tokens}"


def prompt_room(recipe: Recipe, arguments: TrainingArguments) -> int | None:
    """Return how many tokens of a prompt the training pass keeps at most; None when there is no limit."""
    if not recipe.makes_room or recipe.completion_field is None or arguments.max_length is None:
        return None
    return int(arguments.max_length) - int(getattr(arguments, recipe.completion_field))


def _comparable(request: TrialRequest) -> dict[str, Any]:
    """Return what keeps trials comparable and cheap: no saving, no reporting, one order of the data."""
    on_cpu = request.device is Device.CPU
    launch = request.config.launch
    is_accelerator = simulates(
        plan_of(request.settings.launch), simulates_devices=on_cpu and launch.simulates_devices
    )
    return {
        "output_dir": str(request.folder),
        "seed": request.config.seed,
        "use_cpu": on_cpu and not is_accelerator,
        "dataloader_pin_memory": not on_cpu,
        "save_strategy": "no",
        # The measuring callback asks for logs, where they disturb no window.
        "logging_strategy": "no",
        "logging_nan_inf_filter": False,
        "report_to": "none",
        "disable_tqdm": True,
        "train_sampling_strategy": "sequential",
        "shuffle_dataset": False,
    }


def _quiet(config_class: Any) -> dict[str, Any]:
    """Return TRL's own default for checkpointing under its new name, where the class has both.

    TRL sets it under the old name, for which transformers warns each time.
    """
    defaults = {entry.name: entry.default for entry in dataclasses.fields(config_class)}
    return {
        new: defaults[old]
        for old, new in (("gradient_checkpointing", "activation_checkpointing"),)
        if old in defaults and new in defaults
    }


def _completions(recipe: Recipe, request: TrialRequest, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fixed budget for completions: a random model would end some early, and do less work."""
    if recipe.completion_field is None:
        return {}
    tokens = asked.get(recipe.completion_field, request.config.trainer.completion_tokens)
    if tokens is None:
        return {}
    found: dict[str, Any] = {
        recipe.completion_field: tokens,
        "generation_kwargs": {"min_new_tokens": tokens},
    }
    if recipe.generations_field is not None:
        # An evaluated batch, too, must hold whole groups of completions.
        found["per_device_eval_batch_size"] = request.config.trainer.batch
    return found


def _default_precision(device: Device, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the precision when nothing is asked, and why it is this one.

    TRL's own default is bfloat16 mixed precision everywhere; a processor that cannot multiply bfloat16 needs
    tens of times longer for it, and nobody would choose that.
    """
    if device is Device.CPU:
        native, reason = has_native_bf16()
    else:
        major, minor = torch.cuda.get_device_capability()
        native, reason = major >= 8, f"compute capability {major}.{minor}"
    asked = given.get("bf16") is not None or bool(given.get("fp16"))
    if native or asked:
        return {}, f"TRL's bfloat16 mixed precision ({reason})"
    return {"bf16": False}, f"float32 ({reason})"
