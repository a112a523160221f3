"""Where libraries do what they are asked, and it is wrong: the harm that a refusal's reason speaks of, shown.

A refusal that the libraries neither raise at, nor leave out, nor ignore has an entry here; without one it is
taken for a rule that is out of date.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from peft import get_peft_model
from seen import Seen, walk_config
from transformers import AutoModelForCausalLM
from walk import Walk

from memsweep.model.folder import model_place
from memsweep.technique.settings import merge
from memsweep.trainers.adapter import adapter_config

UNCHANGED = {"dpo": math.log(2), "online_dpo": math.log(2), "kto": 0.5}
"""The first loss where policy and reference are one model: no answer is preferred yet."""

SMALL_STEPS = {"trainer.arguments.learning_rate": 2e-5}
"""As large as people's; the walk's own is a thousand times that."""


def another_reference(walk: Walk, trainer: str, options: Mapping[str, Any]) -> bool:
    """The reference is not the model that training starts from, though it is with LoRA."""

    def distance(chosen: Mapping[str, Any]) -> float:
        return abs(seen(walk, trainer, chosen).first_loss - UNCHANGED[trainer])

    return distance({**options, "adapter": "lora"}) < 1e-5 < 1e-3 < distance(options)


def padding_is_scored(walk: Walk, trainer: str, options: Mapping[str, Any]) -> bool:
    """The loss depends on how much padding there is, though it does not with LoRA."""

    def shift(chosen: Mapping[str, Any]) -> float:
        wider = seen(walk, trainer, {**chosen, "pad_to_multiple_of": "multiple"}).first_loss
        return abs(wider - seen(walk, trainer, chosen).first_loss)

    return shift({**options, "adapter": "lora"}) < 1e-5 < 1e-3 < shift(options)


def scales_stay(walk: Walk, trainer: str, options: Mapping[str, Any]) -> bool:
    """At a usual learning rate no scale of a norm changes in two steps, though LoRA's weights do."""
    stuck = seen(walk, trainer, {**options, **SMALL_STEPS}).moved
    alike = {key: value for key, value in options.items() if key != "adapter"}
    moving = seen(walk, trainer, {**alike, "adapter": "lora", **SMALL_STEPS}).moved
    return not any("norm" in name for name in stuck) and any("lora" in name for name in moving)


def one_prefix_for_several_examples(walk: Walk, trainer: str, options: Mapping[str, Any]) -> bool:
    """There are fewer rows to put virtual tokens before than there are examples."""
    return seen(walk, trainer, options).rows < seen(walk, trainer, {}).rows


def generates_as_another_model(walk: Walk, trainer: str, options: Mapping[str, Any]) -> bool:
    """Generation scores its tokens otherwise than training does, though it does not with LoRA."""

    def distance(chosen: Mapping[str, Any]) -> float:
        config = walk_config(trainer, walk.folder)
        place = model_place(config.model)
        settings = merge(walk.choice(trainer, chosen), trainer, walk.catalogue)
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_pretrained(place.name, dtype=torch.float32)
        model = get_peft_model(model, adapter_config(settings.adapter, "CAUSAL_LM")).eval()
        prompt = torch.arange(20, 36)[None]
        wanted = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "output_logits": True}
        mask = torch.ones_like(prompt)
        with torch.no_grad():
            said = model.generate(
                input_ids=prompt, attention_mask=mask, **wanted, return_dict_in_generate=True
            )
            whole = model(input_ids=said.sequences, attention_mask=torch.ones_like(said.sequences)).logits
        place_of_first = whole.shape[1] - 7  # virtual tokens may come first
        asked = whole[0, place_of_first : place_of_first + 6].log_softmax(-1)
        given = torch.stack(said.logits, dim=1)[0].log_softmax(-1)
        return float((asked - given).abs().max())

    return distance({"adapter": "lora"}) < 1e-4 < 1e-2 < distance({"adapter": options["adapter"]})


def seen(walk: Walk, trainer: str, options: Mapping[str, Any]) -> Seen:
    result = walk.run(trainer, options)
    assert result.seen is not None, f"{trainer} {options}: {result.message}"
    return result.seen


Harm = Callable[[Walk, str, Mapping[str, Any]], bool]

_HARMS: Mapping[str, Harm] = {
    "adapter=pissa": another_reference,
    "adapter=olora": another_reference,
    "adapter=ln_tuning": scales_stay,
    "adapter=prompt_tuning": generates_as_another_model,
    "adapter=p_tuning": generates_as_another_model,
    "adapter=prefix_tuning": generates_as_another_model,
    "adapter=prompt_tuning reward": padding_is_scored,
    "adapter=p_tuning reward": padding_is_scored,
    "packing=wrapped": one_prefix_for_several_examples,
}


def harm(option: str, trainer: str) -> Harm | None:
    """Return what shows the harm that a refusal of `option` speaks of; None when none is declared."""
    return _HARMS.get(f"{option} {trainer}", _HARMS.get(option))
