"""From a trial's request to a trainer that is ready to train.

Each module of this package with a `RECIPE` is a trainer; its name is what `trainer=` takes.  Importing this
imports them all: it is what a warm template pays once.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from dataclasses import dataclass
from typing import Any

# TRL warns at import that its experimental trainers may change; who chose one by name knows.
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from memsweep import trainers
from memsweep.errors import ConfigError
from memsweep.trainers.adapter import adapter_config
from memsweep.trainers.arguments import quantization_config, training_arguments
from memsweep.trainers.recipe import Recipe, TrialRequest


def _recipes() -> dict[str, Recipe]:
    found = {}
    for entry in pkgutil.iter_modules(trainers.__path__):
        if entry.name != "build":
            module = importlib.import_module(f"memsweep.trainers.{entry.name}")
            if hasattr(module, "RECIPE"):
                found[entry.name] = module.RECIPE
    return found


RECIPES = _recipes()


@dataclass(frozen=True, slots=True)
class Built:
    """A trainer that is ready to train.

    Attributes:
        trainer: The trainer.
        recipe: How it was made.
        asked: The fields of its arguments that the study and the techniques set.
        checkpoints: Whether activations are to be recomputed.  Asked of the arguments before the trainer has
            them: for quantized models TRL clears the field once it has done what it says.
    """

    trainer: Any
    recipe: Recipe
    asked: dict[str, Any]
    checkpoints: bool


def recipe_of(name: str) -> Recipe:
    """Return the recipe of the trainer `name`.

    Raises:
        ConfigError: If there is none; it lists the trainers.
    """
    if name not in RECIPES:
        raise ConfigError(f"trainer.name must be one of {', '.join(RECIPES)}, got {name}")
    return RECIPES[name]


def build(request: TrialRequest) -> Built:
    """Return the trainer that `request` asks for, its model loaded and its data prepared.

    Raises:
        ConfigError: If the request cannot be meant.  What TRL itself refuses comes as TRL raises it.
    """
    recipe = recipe_of(request.config.trainer.name)
    arguments, asked = training_arguments(recipe, request)
    keywords = {
        "model": request.model,
        "args": arguments,
        "train_dataset": request.data,
        "processing_class": request.tokenizer,
        "peft_config": adapter_config(request.settings.adapter, recipe.task_type),
        **recipe.keywords(request),
    }
    if recipe.quantization_keyword:
        keywords["quantization_config"] = quantization_config(request)
    checkpoints = bool(arguments.gradient_checkpointing)
    return Built(recipe.trainer_class(**keywords), recipe, asked, checkpoints)
