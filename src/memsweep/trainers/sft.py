"""Supervised fine-tuning: prompt and completion, messages, or text."""

from __future__ import annotations

from trl import SFTConfig, SFTTrainer

from memsweep.trainers.recipe import Recipe

RECIPE = Recipe(
    config_class=SFTConfig,
    trainer_class=SFTTrainer,
    prepared_fields=frozenset(
        {"max_length", "packing", "packing_strategy", "padding_free", "truncation_mode"}
    ),
)
