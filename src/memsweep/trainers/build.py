"""From a trial's request to a trainer that is ready to train.

Each module of this package with a `RECIPE` is a trainer; its name is what `trainer=` takes.  Importing this
imports them all: it is what a warm template pays once.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# TRL warns at import that its experimental trainers may change; who chose one by name knows.
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from memsweep import trainers
from memsweep.errors import ConfigError
from memsweep.trainers.adapter import adapter_config
from memsweep.trainers.arguments import longer, quantization_config, training_arguments
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

IGNORED = -100
"""The label of a token that is not to be learned.  Source: torch==2.13.0 cross_entropy ignore_index."""


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
        "train_dataset": request.data,
        "processing_class": request.tokenizer,
        "peft_config": adapter_config(request.settings.adapter, recipe.task_type),
        **recipe.keywords(request),
    }
    if request.evaluation is not None:
        keywords["eval_dataset"] = request.evaluation
    if recipe.quantization_keyword:
        keywords["quantization_config"] = quantization_config(request)
    checkpoints = bool(arguments.gradient_checkpointing)
    trainer_class = refusing_no_rows(recipe.trainer_class, request.config.trainer.arguments)
    return Built(trainer_class(**keywords), recipe, asked, checkpoints)


def refusing_no_rows(trainer_class: Any, study: Mapping[str, Any]) -> Any:
    """Return a trainer class whose preparation of data refuses to leave nothing to learn from.

    TRL would go on: with no rows training ends without a step, or in a step that cannot concatenate nothing;
    rows of which no token is a label train with a loss of 0.  Source: seen with trl==1.16.0.

    Args:
        trainer_class: A trainer of TRL's.
        study: `trainer.arguments`.
    """
    if not hasattr(trainer_class, "_prepare_dataset"):
        return trainer_class

    class Refusing(trainer_class):  # type: ignore[misc]  # TRL is not followed by the type checker
        def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, *rest: Any) -> Any:
            rows = super()._prepare_dataset(dataset, processing_class, args, *rest)
            if not _has_labels(rows):
                raise ConfigError(_nothing_left(trainer_class.__name__, len(dataset), args.max_length, study))
            return rows

    Refusing.__name__, Refusing.__qualname__ = trainer_class.__name__, trainer_class.__qualname__
    return Refusing


def _has_labels(rows: Any) -> bool:
    if len(rows) and "labels" in rows.column_names:
        return any(label != IGNORED for labels in rows["labels"] for label in labels)
    return bool(len(rows))


def _nothing_left(trainer: str, n_examples: int, max_length: int | None, study: Mapping[str, Any]) -> str:
    kept = f"{trainer} keeps none of the {n_examples} examples"
    if max_length is None:
        return f"{kept}: none has a token that is to be learned"
    return (
        f"{kept}: what is to be learned lies beyond max_length={max_length} in each; "
        f"type {longer(study, 2 * max_length)}"
    )
