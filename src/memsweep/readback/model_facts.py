"""What is a model, read from its modules and weights: what recomputes, what is trained, how weights are held.

Fields of transformers, PEFT and bitsandbytes are known by name here; techniques are not.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from memsweep.readback.plain import digest, plain
from memsweep.readback.shares import n_numbers, shape
from memsweep.trainers.adapter import adapter_facts

# Parts that PEFT adds beside those that its method's own prefix names.
# Source: peft==0.21.2 peft_model.py, utils/other.py
_ADDED = ("prompt_encoder.", "modules_to_save.", "trainable_tokens_")

# Of an adapter's config: where the model came from, and by which library.
_ORIGIN = frozenset({"auto_mapping", "base_model_name_or_path", "peft_version", "revision"})

# Of a model's config: where it came from, and what is read from the model itself.
_NOT_ITS_OWN = frozenset({"_name_or_path", "architectures", "quantization_config", "transformers_version"})


def checkpointed(model: torch.nn.Module) -> dict[str, Any]:
    """Return which modules recompute their activations, and how."""
    flagged = list(checkpointing_modules(model))
    ways = {
        json.dumps(plain(keywords), sort_keys=True) for module in flagged if (keywords := keywords_of(module))
    }
    functions = {plain(function_of(module)) for module in flagged if function_of(module) is not None}
    return {
        "modules": [bool(module.gradient_checkpointing) for module in flagged],
        "keywords": sorted(ways),
        "functions": sorted(functions),
    }


def recompute_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two answers of `checkpointed` say that the same is recomputed.

    `use_reentrant` is left out: it says how autograd is held meanwhile, not what is recomputed, and a trainer
    that switches checkpointing off to generate may set it anew (online DPO, with transformers==5.17.0).
    """

    def what(facts: Mapping[str, Any]) -> tuple[Any, ...]:
        ways = [json.loads(text) for text in facts["keywords"]]
        kept = [{key: way[key] for key in way if key != "use_reentrant"} for way in ways]
        return facts["modules"], facts["functions"], [way for way in kept if way]

    return what(one) == what(other)


def checkpointing_modules(model: torch.nn.Module) -> Iterator[Any]:
    """Yield the modules that can recompute their activations."""
    for module in model.modules():
        if isinstance(getattr(module, "gradient_checkpointing", None), bool):
            yield module


def keywords_of(module: Any) -> Mapping[str, Any]:
    """Return what a module's checkpointing function is called with."""
    return getattr(getattr(module, "_gradient_checkpointing_func", None), "keywords", None) or {}


def function_of(module: Any) -> Any | None:
    """Return the function that recomputes for a module, its keywords left out; None when it has none."""
    function = getattr(module, "_gradient_checkpointing_func", None)
    return function.func if isinstance(function, functools.partial) else function


def trained_parameters(model: torch.nn.Module) -> int:
    """Return how many numbers the optimizer changes."""
    return sum(n_numbers(parameter) for parameter in model.parameters() if parameter.requires_grad)


def without_adapter(model: Any) -> Any:
    """Return the model that an adapter was put into; the model itself when there is none."""
    return model.get_base_model() if hasattr(model, "peft_config") else model


def is_added(name: str, model: Any) -> bool:
    """Tell whether a parameter or module of this name belongs to the model's adapter."""
    if not hasattr(model, "peft_config"):
        return False
    own = getattr(model.base_model, "prefix", None)
    return any(part in name for part in (*_ADDED, *([own] if isinstance(own, str) else [])))


def learns_a_prompt(model: Any) -> bool:
    """Tell whether the model's adapter is put before each row, and not into modules."""
    configs = getattr(model, "peft_config", None) or {}
    return any(getattr(config, "is_prompt_learning", False) for config in configs.values())


def is_quantized(module_or_weight: Any) -> bool:
    """Tell whether a module or a weight is one that holds numbers in few bits."""
    return type(module_or_weight).__module__.startswith("bitsandbytes")


def base_dtypes(model: Any) -> Counter[str]:
    """Return the number types of the weights that are neither an adapter's nor quantized: type to weights.

    Those that transformers keeps in 32 bits whatever is asked are left out.
    """
    base = without_adapter(model)
    kept = {
        *(getattr(base, "_keep_in_fp32_modules", None) or ()),
        *(getattr(base, "_keep_in_fp32_modules_strict", None) or ()),
    }
    return Counter(
        str(parameter.dtype)
        for name, parameter in model.named_parameters()
        if parameter.is_floating_point()
        and not is_quantized(parameter)
        and not is_added(name, model)
        and not any(part in name.split(".") for part in kept)
    )


def base_linears(model: Any) -> dict[str, torch.nn.Module]:
    """Return the linear layers of the model without its adapter, by their names in it."""
    found: dict[str, torch.nn.Module] = {}
    for name, module in without_adapter(model).named_modules():
        own_name = name.replace(".base_layer", "").replace(".original_module", "")
        if isinstance(module, torch.nn.Linear) and not is_added(f"{name}.", model):
            found[own_name] = module
    return found


def adapted(model: Any) -> dict[str, Any]:
    """Return the modules that an adapter was put into, by their names in the model."""
    if not hasattr(model, "peft_config"):
        return {}
    return {
        name: module
        for name, module in without_adapter(model).named_modules()
        if hasattr(module, "base_layer") and hasattr(module, "adapter_layer_names")
    }


def attention(model: Any) -> list[str]:
    """Return the attention kernels of the model and its parts."""
    configs = [getattr(part, "config", None) for part in without_adapter(model).modules()]
    found = {getattr(config, "_attn_implementation", None) for config in configs if config is not None}
    return sorted(str(name) for name in found - {None})


def quantized(model: Any) -> dict[str, Any] | None:
    """Return how the linear layers are quantized and which are not; None when no weight is."""
    linears = base_linears(model)
    ways: Counter[str] = Counter()
    for module in linears.values():
        if is_quantized(module):
            ways[json.dumps(way_of(module), sort_keys=True)] += 1
    if not ways and not any(is_quantized(weight) for weight in model.parameters()):
        return None
    return {
        "ways": [{**json.loads(way), "layers": number} for way, number in sorted(ways.items())],
        "left_out": sorted(name for name, module in linears.items() if not is_quantized(module)),
    }


def way_of(module: Any) -> dict[str, Any]:
    """Return how one quantized linear layer holds its weight and in what it multiplies."""
    weight = module.weight
    state = getattr(weight, "quant_state", None)
    return {
        "class": type(module).__name__,
        "weight": type(weight).__name__,
        "storage": str(weight.dtype),
        "type": getattr(weight, "quant_type", None),
        "nested": getattr(state, "nested", getattr(weight, "compress_statistics", None)),
        "blocksize": getattr(weight, "blocksize", None),
        "compute": plain(getattr(module, "compute_dtype", None)),
        "threshold": plain(getattr(getattr(module, "state", None), "threshold", None)),
    }


def adapter_of(model: Any) -> dict[str, Any] | None:
    """Return the adapters of a model: their configs, and what of them is in its modules."""
    configs = getattr(model, "peft_config", None)
    if not configs:
        return None
    own = {
        name: {field: value for field, value in adapter_facts(config).items() if field not in _ORIGIN}
        for name, config in configs.items()
    }
    modules = adapted(model)
    return {
        "configs": own,
        "active": plain(getattr(model, "active_adapter", None)),
        "modules": digest(sorted(modules)),
        "number_of_modules": len(modules),
        "per_module": {
            field: sorted({json.dumps(plain(getattr(module, field, None))) for module in modules.values()})
            for field in ("r", "scaling", "use_dora", "disable_adapters", "merged")
        },
        "dtypes": dict(
            sorted(
                Counter(str(p.dtype) for name, p in model.named_parameters() if is_added(name, model)).items()
            )
        ),
    }


def model_facts(model: Any) -> dict[str, Any]:
    """Return what a model is, its adapter left out, as JSON-ready data."""
    parameters = list(model.named_parameters())
    shapes = [[name, shape(p), str(p.dtype), p.requires_grad] for name, p in parameters]
    kinds = Counter(type(module).__name__ for module in model.modules())
    config = {name: value for name, value in model.config.to_dict().items() if name not in _NOT_ITS_OWN}
    return {
        "class": type(model).__name__,
        "config_sha256": digest(plain(config)),
        "attention": attention(model),
        "kernels_from_hub": bool(getattr(without_adapter(model), "use_kernels", False)),
        "checkpointing": checkpointed(model),
        "dtypes": dict(sorted(Counter(str(p.dtype) for _, p in parameters).items())),
        "base_dtypes": dict(sorted(base_dtypes(model).items())),
        "trained_parameters": trained_parameters(model),
        "parameters": sum(n_numbers(p) for _, p in parameters),
        "parameters_sha256": digest(shapes),
        "modules": dict(sorted(kinds.items())),
        "quantization": quantized(model),
    }
