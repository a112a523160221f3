"""Online direct preference optimization: prompts; two completions of each are generated, scored and compared.

TRL counts its batch in prompts.  The trainer copies the model for reference, unless there is an adapter.  It
cannot evaluate: its evaluation calls the model without input ids (seen with trl==1.16.0: ValueError: You must
specify exactly one of input_ids or inputs_embeds).
"""

from __future__ import annotations

from typing import Any

from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

from memsweep.trainers.recipe import Recipe, TrialRequest
from memsweep.trainers.rewards import reward


def _keywords(request: TrialRequest) -> dict[str, Any]:
    return {"reward_funcs": reward(request.config.reward)}


RECIPE = Recipe(
    config_class=OnlineDPOConfig,
    trainer_class=OnlineDPOTrainer,
    keywords=_keywords,
    completion_field="max_new_tokens",
    quantization_keyword=False,
    evaluates=False,
    makes_room=True,
)
