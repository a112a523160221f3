"""Is what was asked of the model in force: its kernels, its number types, its adapter, what it recomputes?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from memsweep.readback.model_facts import (
    adapted,
    attention,
    base_dtypes,
    base_linears,
    checkpointing_modules,
    function_of,
    is_added,
    is_quantized,
    keywords_of,
    learns_a_prompt,
    way_of,
    without_adapter,
)
from memsweep.readback.plain import plain, short
from memsweep.readback.shares import n_numbers
from memsweep.trainers.build import Built
from memsweep.trainers.fields import field_for

# Keywords of checkpointing that are no keywords of torch's function.
_EVERY = "every_n_layers"

# Their signs in the function that recomputes: transformers puts one of its own in torch's place to move what
# is kept to the host; TRL says by a context what is kept.
# Source: transformers==5.24.0 modeling_utils.py; trl==1.16.0 models/selective_activation_checkpointing.py
_SIGNS: Mapping[str, Callable[[Any], bool]] = {
    "offload": lambda module: function_of(module) is not torch.utils.checkpoint.checkpoint,
    "selective": lambda module: "context_fn" in keywords_of(module),
}

# Fields of BitsAndBytesConfig and where a layer shows them.
_SHOWN = {
    "bnb_4bit_quant_type": "type",
    "bnb_4bit_use_double_quant": "nested",
    "bnb_4bit_compute_dtype": "compute",
    "bnb_4bit_quant_storage": "storage",
    "llm_int8_threshold": "threshold",
}


def checkpointing_differences(built: Built) -> Iterable[str]:
    """Yield a sentence where other modules recompute than were asked for, or in another way."""
    modules = list(checkpointing_modules(built.trainer.model))
    asked = _checkpointing_keywords(built)
    on = [module for module in modules if module.gradient_checkpointing]
    if built.checkpoints != bool(on):
        found = f"{'some' if on else 'no'} module of the model recomputes"
        yield f"checkpointing={built.checkpoints} was asked for; {found}"
        return
    if not on:
        for name, value in asked.items():
            yield f"checkpointing with {name}={plain(value)} was asked for; no module of the model recomputes"
        return
    every = int(asked.get(_EVERY) or 1)
    layers = [module for module in modules if isinstance(module, GradientCheckpointingLayer)]
    flags = [bool(layer.gradient_checkpointing) for layer in layers]
    # Source: transformers==5.24.0 modeling_utils.py _set_gradient_checkpointing
    if flags != [place % every == 0 for place in range(len(layers))]:
        places = ", ".join(str(place) for place, flag in enumerate(flags) if flag)
        which = "every layer" if every == 1 else f"one layer of {every}"
        found = f"of {len(layers)} layers these recompute: {places or 'none'}"
        yield f"checkpointing of {which} was asked for; {found}"
    for name, value in asked.items():
        if name != _EVERY:
            yield from _way_differences(name, value, on)


def _checkpointing_keywords(built: Built) -> dict[str, Any]:
    for name in ("activation_checkpointing_kwargs", "gradient_checkpointing_kwargs"):
        if built.asked.get(name):
            return dict(built.asked[name])
    return {}


def _way_differences(name: str, value: Any, modules: list[Any]) -> Iterable[str]:
    """Compare one keyword of checkpointing with what the recomputing modules' function has."""
    label = f"checkpointing with {name}={plain(value)} was asked for"
    for module in modules:
        has = _SIGNS[name](module) if name in _SIGNS else keywords_of(module).get(name)
        if plain(has) != plain(bool(value) if name in _SIGNS else value):
            yield f"{label}; the function of {type(module).__name__} has {plain(dict(keywords_of(module)))}"
            return


def model_differences(trainer: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    """Yield a sentence for each keyword of the model that was asked for and is not what the model has."""
    readings: Mapping[str, Callable[[Any, Any], Iterable[str]]] = {
        "attn_implementation": _attention_differences,
        "dtype": _dtype_differences,
        "torch_dtype": _dtype_differences,
        "quantization": lambda trainer, asked: quantization_differences(trainer.model, asked),
    }
    for name, value in asked.items():
        if name in readings:
            yield from readings[name](trainer, value)
            continue
        model = without_adapter(trainer.model)
        holder = model if hasattr(type(model), name) else model.config
        found = getattr(holder, name, value)
        if value is not None and plain(found) != plain(value):
            yield f"{name}={plain(value)} was asked for; the model has {plain(found)}"


def _attention_differences(trainer: Any, asked: Any) -> Iterable[str]:
    if asked is None:
        return
    for label, model in (("model", trainer.model), ("reference model", getattr(trainer, "ref_model", None))):
        found = [] if model is None else attention(model)
        if model is not None and found != [asked]:
            yield f"attn_implementation={asked} was asked for; the {label} has {', '.join(found) or 'none'}"


def _dtype_differences(trainer: Any, asked: Any) -> Iterable[str]:
    """Compare the type of every weight that is neither an adapter's nor quantized with the one asked for."""
    if asked in (None, "auto"):
        return
    wanted = short(asked)
    for label, model in (("model", trainer.model), ("reference model", getattr(trainer, "ref_model", None))):
        found = {} if model is None else {short(name): number for name, number in base_dtypes(model).items()}
        if set(found) - {wanted}:
            weights = ", ".join(f"{number} of {name}" for name, number in sorted(found.items()))
            yield f"dtype={wanted} was asked for; the {label}'s weights are {weights}"


def quantization_differences(model: Any, asked: Mapping[str, Any] | None) -> Iterable[str]:
    """Yield a sentence where a linear layer's weight is not held as was asked for."""
    if not asked:
        return
    label = f"quantization={plain(asked)} was asked for"
    linears = base_linears(model)
    quantized = {name: module for name, module in linears.items() if is_quantized(module)}
    if not quantized:
        yield f"{label}; no module of the model is quantized"
        return
    plain_ones = sorted(
        name for name in set(linears) - set(quantized) if not _may_be_left(name, model, asked)
    )
    if plain_ones:
        yield f"{label}; {len(plain_ones)} linear layers are not quantized: {', '.join(plain_ones[:3])}"
    for name, module in sorted(quantized.items()):
        has = way_of(module)
        bits = "int8" if asked.get("load_in_8bit") else "4bit" if asked.get("load_in_4bit") else ""
        if bits not in has["weight"].lower():
            yield f"{label}; the weight of {name} is {has['weight']}"
            return
        for field, shown in _SHOWN.items():
            if field in asked and has[shown] is not None and short(has[shown]) != short(asked[field]):
                yield f"{label}; {name} has {field}={short(has[shown])}"
                return


def _may_be_left(name: str, model: Any, asked: Mapping[str, Any]) -> bool:
    """Tell whether a linear layer may stay as it is: the head, or what was asked to be left out."""
    base = without_adapter(model)
    heads = [
        module
        for module in (base.get_output_embeddings(), getattr(base, "score", None))
        if module is not None
    ]
    skipped = asked.get("llm_int8_skip_modules") or ()
    is_head = any(part is dict(base.named_modules()).get(name) for part in heads)
    return is_head or any(one == name or one in name.split(".") for one in skipped)


def adapter_differences(model: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    """Yield a sentence where the adapter is another, is not in the model, or is not all that is trained."""
    configs = getattr(model, "peft_config", None)
    if not asked:
        if configs:
            yield f"no adapter was asked for; the model has {', '.join(map(_kind, configs.values()))}"
        return
    label = f"adapter {asked.get('type')}"
    if not configs:
        yield f"{label} was asked for; the model has none"
        return
    config = configs.get(getattr(model, "active_adapter", None)) or next(iter(configs.values()))
    if _kind(config) != str(asked.get("type")).lower():
        yield f"{label} was asked for; the model has {_kind(config)}"
        return
    yield from _config_differences(label, config, asked)
    yield from _module_differences(label, model, config, asked)
    yield from _trained_differences(label, model, asked)


def _kind(config: Any) -> str:
    return str(plain(config.peft_type)).lower()


def _config_differences(label: str, config: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    for setting, value in asked.items():
        if setting == "type":
            continue
        field = field_for(setting, type(config))
        found = getattr(config, field)
        # PEFT writes the modules that it found in place of a word for all of them.
        is_expanded = isinstance(value, str) and isinstance(found, set | list)
        if not is_expanded and _as_set(found) != _as_set(value):
            yield f"{label} with {field}={plain(value)} was asked for; it has {plain(found)}"


def _as_set(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, set | frozenset | list | tuple) else plain(value)


def _module_differences(label: str, model: Any, config: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    """Look for the adapter in the model's modules: how many, of what rank and scale, switched on."""
    if learns_a_prompt(model):
        yield from _prompt_differences(label, model)
        return
    modules = adapted(model)
    if not modules:
        yield f"{label} was asked for; it is in no module of the model"
        return
    off = [name for name, module in modules.items() if module.disable_adapters or module.merged]
    if off:
        yield f"{label} was asked for; it is switched off or merged in {len(off)} modules, as in {off[0]}"
    for name, module in modules.items():
        for field, wanted in _wanted_in_a_module(config).items():
            found = getattr(module, field, None)
            has = found.get(model.active_adapter) if isinstance(found, Mapping) else None
            if has is not None and not math.isclose(float(has), float(wanted)):
                yield f"{label} with {field}={wanted} was asked for; {name} has {has}"
                return
    if str(asked.get("target_modules")) == "all-linear":
        linears = {name for name in base_linears(model) if not _may_be_left(name, model, {})}
        if linears - set(modules):
            yield f"{label} of all linear layers was asked for; {len(linears - set(modules))} have none"


def _prompt_differences(label: str, model: Any) -> Iterable[str]:
    """Say where what is put before a row is nothing, or hides the row's end from the head that reads it."""
    if not any(n_numbers(parameter) for parameter in model.prompt_encoder.parameters()):
        yield f"{label} was asked for; there is nothing before a sequence"
    # Source: transformers==5.24.0 modeling_layers.py: will not detect padding tokens in `inputs_embeds`
    passes_embeddings = not any(hasattr(part, "prefix_projection") for part in model.prompt_encoder.values())
    if passes_embeddings and hasattr(without_adapter(model), "score"):
        yield f"{label} was asked for; it hides token ids, so the scores of padded rows are those of padding"


def _wanted_in_a_module(config: Any) -> dict[str, float]:
    """Return what each adapted module has by the adapter's config, where all have the same."""
    if getattr(config, "rank_pattern", None) or getattr(config, "alpha_pattern", None):
        return {}
    wanted: dict[str, float] = {}
    rank, alpha = getattr(config, "r", None), getattr(config, "lora_alpha", None)
    if isinstance(rank, int) and rank:
        wanted["r"] = rank
        if alpha is not None:
            wanted["scaling"] = alpha / (math.sqrt(rank) if getattr(config, "use_rslora", False) else rank)
    if hasattr(config, "use_dora"):
        wanted["use_dora"] = bool(config.use_dora)
    return wanted


def reference_differences(trainer: Any) -> Iterable[str]:
    """Say where the model without its adapter is the reference, and is not what training starts from."""
    model = trainer.model
    takes_it = hasattr(trainer, "ref_model") and trainer.ref_model is None and getattr(trainer, "beta", None)
    for name, module in adapted(model).items() if takes_it else ():
        low, high = getattr(module, "lora_A", {}), getattr(module, "lora_B", {})
        active = model.active_adapter
        if active not in low or not isinstance(model.peft_config[active].init_lora_weights, str):
            return
        # What the adapter adds before the first step was taken out of the weights beneath it.
        if bool((high[active].weight.float() @ low[active].weight.float()).abs().max() > 0):
            yield (
                "the reference is the model without its adapter; that is not the model that training starts "
                f"from: the adapter holds a part of the weights of {name}"
            )
        return


def _trained_differences(label: str, model: Any, asked: Mapping[str, Any]) -> Iterable[str]:
    """Tell what is trained beside the adapter, and whether anything of it is."""
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    biases = asked.get("bias") not in (None, "none")
    beside = [
        name for name in trained if not is_added(name, model) and not (biases and name.endswith(".bias"))
    ]
    if beside:
        yield f"{label} was asked for; {len(beside)} parameters beside it are trained, as {beside[0]}"
    if not any(is_added(name, model) and "modules_to_save." not in name for name in trained):
        yield f"{label} was asked for; nothing of it is trained"
