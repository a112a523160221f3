"""REINFORCE leave-one-out: prompts; each completion is compared with the others of its prompt."""

from __future__ import annotations

from typing import Any

from trl import RLOOConfig, RLOOTrainer

from memsweep.trainers.recipe import Recipe, TrialRequest
from memsweep.trainers.rewards import reward


def _keywords(request: TrialRequest) -> dict[str, Any]:
    return {"reward_funcs": reward(request.config.reward)}


RECIPE = Recipe(
    config_class=RLOOConfig,
    trainer_class=RLOOTrainer,
    keywords=_keywords,
    completion_field="max_completion_length",
    generations_field="num_generations",
)
