"""Group relative policy optimization: prompts; completions are generated, scored and compared in groups."""

from __future__ import annotations

from typing import Any

from trl import GRPOConfig, GRPOTrainer

from memsweep.trainers.recipe import Recipe, TrialRequest
from memsweep.trainers.rewards import reward


def _keywords(request: TrialRequest) -> dict[str, Any]:
    return {"reward_funcs": reward(request.config.reward)}


RECIPE = Recipe(
    config_class=GRPOConfig,
    trainer_class=GRPOTrainer,
    keywords=_keywords,
    completion_field="max_completion_length",
    generations_field="num_generations",
)
