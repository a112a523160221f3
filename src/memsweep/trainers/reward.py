"""A reward model: chosen and rejected, one number a sequence."""

from __future__ import annotations

from trl import RewardConfig, RewardTrainer

from memsweep.trainers.recipe import Recipe

RECIPE = Recipe(
    config_class=RewardConfig,
    trainer_class=RewardTrainer,
    task_type="SEQ_CLS",
    prepared_fields=frozenset({"max_length"}),  # leaves rows out, cuts none
)
