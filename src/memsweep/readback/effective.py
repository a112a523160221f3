"""What is in force, once a trainer is built and before its first step?

Read back from the objects, not from what was asked.  The facts are written to effective.json, and their hash
tells whether two set-ups are one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memsweep.config.schema import TrialConfig
from memsweep.readback.allocator import allocator_settings
from memsweep.readback.model_facts import adapter_of, checkpointed, model_facts, trained_parameters
from memsweep.readback.optimizer import optimizer_facts
from memsweep.readback.plain import digest, plain
from memsweep.readback.trainer_facts import (
    callbacks,
    collator_facts,
    generator,
    is_compiled,
    launch_facts,
    mixed_precision,
    offloads_activations,
    reference,
    rows_facts,
)
from memsweep.trainers.build import Built
from memsweep.trainers.fields import field_names

__all__ = ["checkpointed", "effective", "effective_hash", "trained_parameters"]

# Fields that say where to write and what to say of it, or that follow from the measure.
_IRRELEVANT = frozenset(
    {
        "disable_tqdm", "greater_is_better", "load_best_model_at_end", "logging_dir",
        "logging_nan_inf_filter", "max_steps", "metric_for_best_model", "model_init_kwargs",
        "num_train_epochs", "output_dir", "project", "push_to_hub_token", "report_to", "run_name",
        "save_only_model", "save_steps", "save_total_limit",
    }
)  # fmt: skip
_OF_SERVICES = ("hub_", "trackio_")

# Fields that are read back from the model's modules.
SEEN_IN_THE_MODULES = frozenset(
    {
        "activation_checkpointing", "activation_checkpointing_kwargs",
        "gradient_checkpointing", "gradient_checkpointing_kwargs",
    }
)  # fmt: skip

# What evaluation is like, where nothing is evaluated.
_OF_EVALUATION = ("eval_", "per_device_eval_", "bf16_full_eval", "fp16_full_eval", "batch_eval_metrics")

# Keywords of `from_pretrained` that are read back from the model itself.
SEEN_IN_THE_MODEL = frozenset({"attn_implementation", "dtype", "quantization_config", "use_kernels"})

# Variables that libraries read, whoever set them.
_VARIABLES = (
    "ACCELERATE_", "CUBLAS_", "CUDA_", "DS_", "FSDP_", "GOMP_", "KMP_", "LD_PRELOAD", "MALLOC_", "MKL_",
    "NCCL_", "OMP_", "PYTORCH_", "TORCH", "TRITON_", "VLLM_", "WORLD_SIZE",
)  # fmt: skip

# What of `measure` is said to people, or is about the study and not about one trial.
_OF_THE_STUDY = frozenset({"name", "repeats", "front_repeats"})

# Which of several equal devices, and where compiled code and an engine's settings are kept.
_WHICH_NOT_HOW = frozenset(
    {"ACCELERATE_DEEPSPEED_CONFIG_FILE", "CUDA_VISIBLE_DEVICES", "TORCHINDUCTOR_CACHE_DIR"}
)


def effective(built: Built, config: TrialConfig) -> dict[str, Any]:
    """Return what is in force, as JSON-ready data.

    Args:
        built: The trainer, its model placed and its optimizer made.
        config: What the trial was asked to do.
    """
    trainer = built.trainer
    return {
        "trainer": {
            "class": type(trainer).__name__,
            "arguments": _arguments(built),
            "precision": mixed_precision(trainer),
            "compiled": is_compiled(trainer),
            "offloads_activations": offloads_activations(trainer),
            "callbacks": callbacks(trainer),
            "generator": generator(trainer),
        },
        "model_keywords": _model_keywords(trainer),
        "collator": collator_facts(trainer),
        "rows": rows_facts(trainer, trainer.train_dataset),
        "evaluation_rows": rows_facts(trainer, getattr(trainer, "eval_dataset", None)),
        "model": {
            **model_facts(trainer.model),
            "wrapper": type(trainer.model_wrapped).__name__,
            "reference": reference(trainer),
        },
        "optimizer": optimizer_facts(trainer.optimizer),
        "adapter": adapter_of(trainer.model),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_VARIABLES) and name not in _WHICH_NOT_HOW
        },
        "allocator": allocator_settings(),
        "launch": launch_facts(trainer),
        "work": {
            "measure": {
                name: value for name, value in asdict(config.measure).items() if name not in _OF_THE_STUDY
            },
            "seed": config.seed,
            "reward": None if built.recipe.completion_field is None else plain(asdict(config.reward)),
        },
    }


def effective_hash(facts: Mapping[str, Any]) -> str:
    """Return a hash of what is in force: 16 hexadecimal digits."""
    return digest(facts)


def _arguments(built: Built) -> dict[str, Any]:
    """Return the fields of the trainer's arguments that nothing else here shows the effect of."""
    trainer = built.trainer
    left_out = _IRRELEVANT | SEEN_IN_THE_MODULES | built.recipe.prepared_fields
    unused = () if getattr(trainer, "eval_dataset", None) is not None else _OF_EVALUATION
    return {
        name: plain(getattr(trainer.args, name))
        for name in field_names(built.recipe.config_class)
        if name not in left_out and not name.startswith((*_OF_SERVICES, *unused))
    }


def _model_keywords(trainer: Any) -> dict[str, Any]:
    keywords = getattr(trainer.args, "model_init_kwargs", None) or {}
    return {name: plain(keywords[name]) for name in sorted(keywords) if name not in SEEN_IN_THE_MODEL}
