"""What is in force, once a trainer is built and before its first step?

Read back from the objects, not from what was asked.  The facts are written to effective.json, and their hash
tells whether two set-ups are one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any

import torch

from memsweep.config.schema import TrialConfig
from memsweep.trainers.adapter import adapter_facts
from memsweep.trainers.build import Built
from memsweep.trainers.fields import field_names

# Fields that say where to write and what to say of it, or that follow from the measure.
_IRRELEVANT = frozenset(
    {
        "disable_tqdm", "hub_model_id", "hub_token", "logging_dir", "logging_nan_inf_filter", "max_steps",
        "model_init_kwargs", "num_train_epochs", "output_dir", "push_to_hub_token", "report_to", "run_name",
    }
)  # fmt: skip

# Keywords of `from_pretrained` that are read back from the model itself.
_SEEN_IN_THE_MODEL = frozenset({"attn_implementation", "dtype", "quantization_config"})

# Variables that libraries read, whoever set them.
_VARIABLES = (
    "ACCELERATE_", "CUBLAS_", "CUDA_", "DS_", "GOMP_", "KMP_", "LD_PRELOAD", "MALLOC_", "MKL_", "NCCL_",
    "OMP_", "PYTORCH_", "TORCH", "TRITON_", "VLLM_", "WORLD_SIZE",
)  # fmt: skip

# Which of several equal devices, and where compiled code is kept.
_WHICH_NOT_HOW = frozenset({"CUDA_VISIBLE_DEVICES", "TORCHINDUCTOR_CACHE_DIR"})


def effective(built: Built, config: TrialConfig) -> dict[str, Any]:
    """Return what is in force, as JSON-ready data.

    Args:
        built: The trainer, its model placed and its optimizer made.
        config: What the trial was asked to do.
    """
    trainer = built.trainer
    irrelevant = _IRRELEVANT | built.recipe.prepared_fields
    keywords = getattr(trainer.args, "model_init_kwargs", None) or {}
    arguments = {
        name: plain(getattr(trainer.args, name))
        for name in field_names(built.recipe.config_class)
        if name not in irrelevant
    }
    return {
        "trainer": {"class": type(trainer).__name__, "arguments": arguments},
        "model_keywords": plain(
            {name: keywords[name] for name in keywords if name not in _SEEN_IN_THE_MODEL}
        ),
        "collator": {"class": type(trainer.data_collator).__name__, **_collator(trainer.data_collator)},
        "rows": {"number": len(trainer.train_dataset), "sha256": rows_digest(trainer)},
        "model": _model(trainer),
        "optimizer": _optimizer(trainer.optimizer),
        "adapter": _adapter(trainer.model),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_VARIABLES) and name not in _WHICH_NOT_HOW
        },
        "launch": {
            "device": str(trainer.args.device),
            "threads": torch.get_num_threads(),
            "processes": trainer.accelerator.num_processes,
            "distributed": plain(trainer.accelerator.distributed_type),
        },
        "work": {
            "measure": asdict(config.measure),
            "seed": config.seed,
            "reward": plain(asdict(config.reward)),
        },
    }


def effective_hash(facts: Mapping[str, Any]) -> str:
    """Return a hash of what is in force: 16 hexadecimal digits."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def checkpointed(model: torch.nn.Module) -> dict[str, Any]:
    """Return which modules recompute their activations, and how."""
    flagged = [
        module
        for module in model.modules()
        if isinstance(getattr(module, "gradient_checkpointing", None), bool)
    ]
    chosen = [module.gradient_checkpointing for module in flagged]
    how = {
        json.dumps(plain(getattr(module._gradient_checkpointing_func, "keywords", {})), sort_keys=True)
        for module in flagged
        if hasattr(module, "_gradient_checkpointing_func")
    }
    return {"modules": [bool(flag) for flag in chosen], "keywords": sorted(how)}


def rows_digest(trainer: Any) -> str:
    """Return a hash of the rows that the trainer prepared, as far as it reads them."""
    rows = trainer.train_dataset
    trainer._set_signature_columns_if_needed()
    wanted = trainer._signature_columns or rows.column_names
    kept = rows.select_columns([name for name in sorted(rows.column_names) if name in wanted])
    text = json.dumps(kept.to_dict(), sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def trained_parameters(model: torch.nn.Module) -> int:
    """Return how many numbers the optimizer changes."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def plain(value: Any) -> Any:
    """Return `value` as JSON-ready data; what has no such form, as its text without an address."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if isinstance(value, torch.dtype | torch.device):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return getattr(value, "__qualname__", type(value).__qualname__)


def _collator(collator: Any) -> dict[str, Any]:
    found = getattr(collator, "__dict__", {})
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, bool | int | float | str) or value is None
    }


def _model(trainer: Any) -> dict[str, Any]:
    model = trainer.model
    parameters = list(model.named_parameters())
    shapes = [[name, list(p.shape), str(p.dtype), p.requires_grad] for name, p in parameters]
    kinds = Counter(type(module).__name__ for module in model.modules())
    return {
        "class": type(model).__name__,
        "wrapper": type(trainer.model_wrapped).__name__,
        "attention": getattr(model.config, "_attn_implementation", None),
        "checkpointing": checkpointed(model),
        "dtypes": dict(sorted(Counter(str(p.dtype) for _, p in parameters).items())),
        "trained_parameters": trained_parameters(model),
        "parameters": sum(p.numel() for _, p in parameters),
        "parameters_sha256": hashlib.sha256(json.dumps(shapes).encode()).hexdigest()[:16],
        "modules": dict(sorted(kinds.items())),
        "quantization": _quantization(model),
        "compute_dtypes": sorted(
            {str(m.compute_dtype) for m in model.modules() if hasattr(m, "compute_dtype")}
        ),
        "reference": _reference(trainer),
    }


def _quantization(model: Any) -> list[dict[str, Any]]:
    """Return the ways in which weights are held in few bits, as the weights themselves have them."""
    found = []
    for weight in model.parameters():
        state = getattr(weight, "quant_state", None)
        way = {
            "kind": type(weight).__name__,
            "type": getattr(weight, "quant_type", None),
            "nested": getattr(state, "nested", None),
        }
        if type(weight).__module__.startswith("bitsandbytes") and way not in found:
            found.append(way)
    return found


def _reference(trainer: Any) -> dict[str, Any] | None:
    reference = getattr(trainer, "ref_model", None)
    if reference is None:
        return None
    dtypes = Counter(str(p.dtype) for p in reference.parameters())
    return {
        "parameters": sum(p.numel() for p in reference.parameters()),
        "dtypes": dict(sorted(dtypes.items())),
    }


def _optimizer(optimizer: Any) -> dict[str, Any]:
    inner = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
    return {
        "class": f"{type(inner).__module__}.{type(inner).__qualname__}",
        "defaults": plain(inner.defaults),
        "paged": bool(getattr(inner, "is_paged", False)),
        "bits": plain(getattr(getattr(inner, "args", None), "optim_bits", None)),
    }


def _adapter(model: Any) -> dict[str, Any] | None:
    configs = getattr(model, "peft_config", None)
    return {name: adapter_facts(config) for name, config in configs.items()} if configs else None
