"""Is what was asked for in force, once a trainer is built?

An instrument that cannot apply a technique must say so, or it attributes another set-up's numbers to it.  No
technique is known here by name: what was asked is compared with what is there seam by seam, field by field.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built
from memsweep.trial._effective import checkpointed, plain, trained_parameters

# Fields whose effect is read back from the model's modules.
_SEEN_IN_THE_MODEL = frozenset({"activation_checkpointing", "gradient_checkpointing"})


def differences(built: Built, settings: Settings) -> tuple[str, ...]:
    """Return one sentence for each thing that was asked for and is not in force."""
    return (
        *_field_differences(built),
        *_checkpointing_differences(built),
        *_model_differences(built.trainer, settings.model),
        *_adapter_differences(built.trainer.model, settings.adapter),
        *_variable_differences(settings.environment),
    )


def _field_differences(built: Built) -> Iterable[str]:
    """Compare what was asked with the arguments, and with what trainer and collator made of them."""
    trainer = built.trainer
    places = (("arguments", trainer.args), ("trainer", trainer), ("collator", trainer.data_collator))
    for name, asked in built.asked.items():
        if name in _SEEN_IN_THE_MODEL:
            continue
        for place, holder in places:
            found = getattr(holder, name, asked)
            if place != "arguments" and not isinstance(found, bool | int | float | str):
                continue
            if not _holds(plain(found), plain(asked)):
                owner = f"{place} of {type(trainer).__name__}" if place == "arguments" else place
                yield f"{name}={plain(asked)} was asked for; the {owner} has {plain(found)}"
                break


def _holds(found: Any, asked: Any) -> bool:
    """Tell whether what was found is what was asked; a mapping may hold more than was asked."""
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        return all(key in found and _holds(found[key], value) for key, value in asked.items())
    return bool(found == asked)


def _checkpointing_differences(built: Built) -> Iterable[str]:
    on = any(checkpointed(built.trainer.model)["modules"])
    if built.checkpoints != on:
        found = f"{'some' if on else 'no'} module of the model recomputes"
        yield f"checkpointing={built.checkpoints} was asked for; {found}"


def _model_differences(trainer: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    model = trainer.model
    attention = asked.get("attn_implementation")
    found = getattr(model.config, "_attn_implementation", None)
    if attention is not None and found != attention:
        yield f"attn_implementation={attention} was asked for; the model has {found}"
    quantized = [module for module in model.modules() if type(module).__module__.startswith("bitsandbytes")]
    if asked.get("quantization") and not quantized:
        yield f"quantization={dict(asked['quantization'])} was asked for; no module of the model is quantized"
    dtype = asked.get("dtype")
    dtypes = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point()}
    if dtype not in (None, "auto") and not quantized and str(dtype).removeprefix("torch.") not in dtypes:
        yield f"dtype={dtype} was asked for; the model's weights are {', '.join(sorted(dtypes))}"


def _adapter_differences(model: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    if not asked:
        return
    configs = getattr(model, "peft_config", None)
    if not configs:
        yield f"adapter {asked.get('type')} was asked for; the model has none"
        return
    config = next(iter(configs.values()))
    kind = str(plain(config.peft_type)).lower()
    if kind != str(asked.get("type")).lower():
        yield f"adapter {asked.get('type')} was asked for; the model has {kind}"
    total = sum(p.numel() for p in model.parameters())
    if trained_parameters(model) >= total:
        yield f"adapter {asked.get('type')} was asked for; all {total:,} parameters are trained"


def _variable_differences(asked: Mapping[str, str]) -> Iterable[str]:
    for name, value in asked.items():
        if os.environ.get(name) != value:
            yield f"{name}={value} was asked for; the environment has {os.environ.get(name)!r}"
