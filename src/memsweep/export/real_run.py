"""Which arguments does a trainer get that trains for real, with the set-up of a trial?

What decides speed and memory is as it was in force in the trial; what made trials comparable and cheap is
the trainer's own again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memsweep.errors import ConfigError
from memsweep.export.chosen import Chosen
from memsweep.export.examples import from_folder
from memsweep.model.folder import TEMPLATE
from memsweep.secret import masked
from memsweep.technique.work import ACCUMULATION, MICRO
from memsweep.trainers.fields import field_names, resolved
from memsweep.trainers.recipe import Recipe

OUTPUT = "output"

DIFFERENCES: Mapping[str, str] = {
    "output_dir": "where the trained model goes",
    "num_train_epochs": "one epoch; the trial trained on a few examples, over and over",
    "max_steps": "none; the trial stopped when its speed was known",
    "save_strategy": "the trainer's own: checkpoints are saved; the trial saved nothing",
    "logging_strategy": "the trainer's own; the trial logged where that disturbed nothing",
    "logging_nan_inf_filter": "the trainer's own",
    "disable_tqdm": "the trainer's own",
    "train_sampling_strategy": "the trainer's own, for most a new order each epoch; all trials had one order",
    "shuffle_dataset": "the trainer's own",
    "generation_kwargs": "none: a completion ends where the model ends it; in the trial each had full length",
    "per_device_eval_batch_size": "the trainer's own: nothing is evaluated until you set eval_strategy",
}
"""Fields that are not as in the trial, and what they are now."""

_KEYWORDS = "model_init_kwargs"


def trainer_arguments(chosen: Chosen, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Return the fields of the trainer's arguments, those of the model's keywords left out.

    Args:
        chosen: The trial.
        recipe: Its trainer.
        folder: The folder that is exported to.

    Raises:
        ConfigError: If the trial had something else in force than what it would be trained with, so that its
            figures would say nothing of that.
    """
    fields, in_force = field_names(recipe.config_class), chosen.in_force
    checkpointing = next(
        name for name in ("activation_checkpointing", "gradient_checkpointing") if name in fields
    )
    values: dict[str, Any] = {
        "output_dir": OUTPUT,
        "num_train_epochs": 1,
        MICRO: in_force[MICRO],
        ACCUMULATION: in_force[ACCUMULATION],
        checkpointing: any(chosen.effective["model"]["checkpointing"]["modules"]),
        "bf16": in_force["bf16"],
        **({"fp16": True} if in_force.get("fp16") else {}),
        **({"use_cpu": True, "dataloader_pin_memory": False} if chosen.on_cpu else {}),
        "seed": chosen.config.seed,
        **recipe.arguments,
    }
    if recipe.completion_field is not None:
        values[recipe.completion_field] = in_force[recipe.completion_field]
    values.update(asked(chosen, recipe))
    del values[_KEYWORDS]
    _require_as_measured(chosen, values)
    if (template := values.get(TEMPLATE)) is not None and Path(template).expanduser().exists():
        values[TEMPLATE] = from_folder(Path(template), folder)
    return values


def model_keywords(chosen: Chosen, recipe: Recipe) -> dict[str, Any]:
    """Return what the model is loaded with: number type, attention, and the like; quantization left out."""
    keywords = {**asked(chosen, recipe)[_KEYWORDS], **chosen.settings.model}
    keywords.pop("quantization", None)
    types = [name.removeprefix("torch.") for name in chosen.effective["model"]["base_dtypes"]]
    if len(types) == 1:
        keywords.setdefault("dtype", types[0])
    return {name: value for name, value in keywords.items() if masked(value, name) == value}


def asked(chosen: Chosen, recipe: Recipe) -> dict[str, Any]:
    """Return the fields that the study and the techniques set, without secrets; model keywords always."""
    found = {
        **resolved(chosen.config.trainer.arguments, recipe.config_class),
        **resolved(chosen.settings.trainer, recipe.config_class),
    }
    found[_KEYWORDS] = found.get(_KEYWORDS) or {}
    return {name: value for name, value in found.items() if masked(value, name) == value}


def withheld(chosen: Chosen, recipe: Recipe) -> tuple[str, ...]:
    """Return the fields that the study sets and that hold a secret."""
    given = resolved(chosen.config.trainer.arguments, recipe.config_class)
    return tuple(sorted(name for name, value in given.items() if masked(value, name) != value))


def differences(chosen: Chosen, recipe: Recipe) -> dict[str, str]:
    """Return the fields of this trainer that are not as in the trial, with what they are now."""
    own = {entry.name: entry.default for entry in dataclasses.fields(recipe.config_class)}
    there = {*field_names(recipe.config_class)} - set(asked(chosen, recipe))
    # What the readings leave out, as where to write, is never as in the trial.
    return {
        name: text
        for name, text in DIFFERENCES.items()
        if name in there and (name not in chosen.in_force or chosen.in_force[name] != own[name])
    }


def _require_as_measured(chosen: Chosen, values: Mapping[str, Any]) -> None:
    """Raise where a plain value is not what was in force: names and defaults of another version, say."""
    wrong = [
        f"{name}={value!r}, and {chosen.in_force[name]!r} was in force"
        for name, value in values.items()
        if name in chosen.in_force
        and name not in DIFFERENCES
        and isinstance(value, bool | int | float | str)
        and isinstance(chosen.in_force[name], bool | int | float | str)
        and value != chosen.in_force[name]
    ]
    if wrong:
        raise ConfigError(
            f"trial {chosen.result.number} would be exported with {'; '.join(wrong)} in it: its files do "
            f"not fit together, or conf/ has changed since. Measure it again: {chosen.result.command}"
        )
