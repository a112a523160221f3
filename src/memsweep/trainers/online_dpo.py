"""Online direct preference optimization: prompts; two completions of each are generated, scored and compared.

TRL counts its batch in prompts.  The trainer copies the model for reference, unless there is an adapter.  It
cannot evaluate: its evaluation calls the model without input ids (seen with trl==1.16.0: ValueError: You must
specify exactly one of input_ids or inputs_embeds).

A model that DeepSpeed holds in parts cannot be copied; there the reference is loaded, as the model is.
"""

from __future__ import annotations

from typing import Any

from transformers import AutoModelForCausalLM
from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

from memsweep.ranks.plan import plan_of
from memsweep.trainers.arguments import model_keywords
from memsweep.trainers.recipe import Recipe, TrialRequest
from memsweep.trainers.rewards import reward

# Source: trl==1.16.0 models/utils.py create_reference_model
_WEIGHTS_IN_PARTS = 3


def _keywords(request: TrialRequest) -> dict[str, Any]:
    keywords: dict[str, Any] = {"reward_funcs": reward(request.config.reward)}
    plan = plan_of(request.settings.launch)
    if plan is not None and plan.zero_stage == _WEIGHTS_IN_PARTS and not request.settings.adapter:
        loaded = AutoModelForCausalLM.from_pretrained(request.model, **model_keywords(RECIPE, request))
        keywords["ref_model"] = loaded
    return keywords


RECIPE = Recipe(
    config_class=OnlineDPOConfig,
    trainer_class=OnlineDPOTrainer,
    keywords=_keywords,
    completion_field="max_new_tokens",
    quantization_keyword=False,
    evaluates=False,
    makes_room=True,
)
