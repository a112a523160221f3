"""Kahneman-Tversky optimization: completions that are each good or bad, the starting model as reference."""

from __future__ import annotations

from trl import KTOConfig, KTOTrainer

from memsweep.trainers.recipe import Recipe

RECIPE = Recipe(config_class=KTOConfig, trainer_class=KTOTrainer)
