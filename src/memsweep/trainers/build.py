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
from memsweep.trainers.order import known_rows, prepared_class, training_data
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
        rows: Which of the trainer's prepared rows are the probe's, in order.
        longest: Which of its prepared rows are the longest, the longest first; as many as there were examples
            for it, or as many as the probe has rows.
    """

    trainer: Any
    recipe: Recipe
    asked: dict[str, Any]
    checkpoints: bool
    rows: tuple[int, ...] = ()
    longest: tuple[int, ...] = ()


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
        ConfigError: If the request cannot be meant, or preparation leaves nothing to train or evaluate on.
            What TRL itself refuses comes as TRL raises it.
    """
    recipe = recipe_of(request.config.trainer.name)
    if request.evaluation is not None and not recipe.evaluates:
        raise ConfigError(
            f"{recipe.trainer_class.__name__} cannot evaluate; type measure.evaluation_examples=0"
        )
    arguments, asked = training_arguments(recipe, request)
    keywords = {
        "model": request.model,
        "args": arguments,
        "train_dataset": training_data(recipe, request, arguments),
        "processing_class": request.tokenizer,
        "peft_config": adapter_config(request.settings.adapter, recipe.task_type),
        **recipe.keywords(request),
    }
    if request.evaluation is not None:
        keywords["eval_dataset"] = request.evaluation
    if recipe.quantization_keyword:
        keywords["quantization_config"] = quantization_config(request)
    checkpoints = bool(arguments.gradient_checkpointing)
    study = request.config.trainer.arguments
    trainer = prepared_class(recipe.trainer_class, study, len(request.data))(**keywords)
    rows, longest = known_rows(trainer, request)
    return Built(trainer, recipe, asked, checkpoints, rows, longest)
