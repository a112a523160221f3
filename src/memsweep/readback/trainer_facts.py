"""What is a trainer about to do, read from it: its optimizer, its rows, its precision, its processes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from memsweep.ranks.simulated import is_simulated
from memsweep.readback.model_facts import attention
from memsweep.readback.plain import digest, plain, simple_fields
from memsweep.readback.shares import n_numbers, optimizer_share, weights_share

# What TRL calls the lengths of the examples in a packed row.  Source: trl==1.16.0 data_utils.py pack_dataset
LENGTHS = "seq_lengths"

# What every trial has, and what only counts or prints.
_OURS = frozenset({"Bracket", "DefaultFlowCallback", "PrinterCallback", "ProgressCallback", "SignOfLife"})


def rows_facts(trainer: Any, rows: Any) -> dict[str, Any] | None:
    """Return what prepared rows are, as far as the trainer reads them; None when there are none."""
    if rows is None:
        return None
    trainer._set_signature_columns_if_needed()
    wanted = trainer._signature_columns or rows.column_names
    columns = sorted(name for name in rows.column_names if name in wanted)
    return {
        "number": len(rows),
        "columns": columns,
        "sha256": digest(rows.select_columns(columns).to_dict()),
    }


def mixed_precision(trainer: Any) -> str:
    """Return the type that forward passes compute in beside the weights' own: `no`, `bf16`, `fp16`, ..."""
    accelerator = trainer.accelerator
    asked = str(plain(accelerator.mixed_precision))
    if asked == "no" or _engine(trainer) or _engine_shards(trainer):
        return asked
    # What accelerate wraps a model's forward pass in keeps the one it replaced.
    # Source: accelerate==1.15.0 accelerator.py prepare_model
    wrapped = any(
        "_original_forward" in vars(part)
        for model in (trainer.model, trainer.model_wrapped)
        for part in _shells(model)
    )
    return asked if accelerator.native_amp and wrapped else "no"


def is_compiled(trainer: Any) -> bool:
    """Tell whether calling the model runs compiled code."""
    return any(
        isinstance(part, torch._dynamo.OptimizedModule)
        or getattr(part, "_compiled_call_impl", None) is not None
        for part in trainer.model_wrapped.modules()
    )


def _shells(model: Any) -> Iterator[Any]:
    """Yield a model and those that it wraps."""
    while model is not None:
        yield model
        inside = vars(model).get("_modules", {})
        model = inside.get("_orig_mod", inside.get("module"))


def _engine(trainer: Any) -> Any | None:
    return getattr(trainer.accelerator.state, "deepspeed_plugin", None)


def _engine_shards(trainer: Any) -> bool:
    return str(plain(trainer.accelerator.distributed_type)) in ("FSDP", "MEGATRON_LM")


def zero_stage(trainer: Any) -> int | None:
    """Return DeepSpeed's stage; None when it is not used."""
    engine = _engine(trainer)
    return None if engine is None else int(engine.zero_stage)


def fsdp_version(trainer: Any) -> int | None:
    """Return which FSDP shards the model; None when none does."""
    plugin = getattr(trainer.accelerator.state, "fsdp_plugin", None)
    return None if plugin is None else int(getattr(plugin, "fsdp_version", 1))


def offloads_activations(trainer: Any) -> bool:
    """Tell whether a forward pass runs in a context that moves activations away."""
    context = getattr(trainer, "maybe_activation_offload_context", None)
    return context is not None and not isinstance(context, contextlib.nullcontext)


def callbacks(trainer: Any) -> list[str]:
    """Return the names of the callbacks that do more than watch."""
    names = {type(callback).__name__ for callback in trainer.callback_handler.callbacks}
    return sorted(names - _OURS)


def reference(trainer: Any) -> dict[str, Any] | None:
    """Return what the reference model is; None when there is none beside the trained one."""
    model = getattr(trainer, "ref_model", None)
    if model is None:
        return None
    dtypes = Counter(str(p.dtype) for p in model.parameters())
    return {
        "parameters": sum(n_numbers(p) for p in model.parameters()),
        "dtypes": dict(sorted(dtypes.items())),
        "attention": attention(model),
    }


def generator(trainer: Any) -> str | None:
    """Return what generates completions: a vLLM of some mode, the model itself, or None when nothing does."""
    uses = getattr(trainer, "use_vllm", None)
    return f"vllm {trainer.args.vllm_mode}" if uses else None if uses is None else "model"


def collator_facts(trainer: Any) -> dict[str, Any]:
    """Return what the collator is."""
    return {"class": type(trainer.data_collator).__name__, **simple_fields(trainer.data_collator)}


def launch_facts(trainer: Any) -> dict[str, Any]:
    """Return on what, and in how many processes, the trainer computes."""
    n_processes = trainer.accelerator.num_processes
    return {
        "device": str(trainer.args.device),
        "threads": torch.get_num_threads(),
        "processes": n_processes,
        "distributed": plain(trainer.accelerator.distributed_type),
        "zero_stage": zero_stage(trainer),
        "fsdp_version": fsdp_version(trainer),
        **(_shared(trainer) if n_processes > 1 else {}),
    }


def _shared(trainer: Any) -> dict[str, Any]:
    """Return how the work is shared: on what, by which engine's settings, and what of it is here."""
    engine = _engine(trainer)
    return {
        "backend": torch.distributed.get_backend(),
        "simulated_devices": trainer.args.device.type == "cpu",
        "cpu_as_accelerator": is_simulated(),
        "deepspeed": None if engine is None else _engine_settings(engine),
        "weights_share": round(weights_share(trainer.model), 4),
        "optimizer_share": _rounded(optimizer_share(trainer)),
    }


def _engine_settings(engine: Any) -> dict[str, Any]:
    """Return DeepSpeed's configuration, accelerate's and the trainer's answers to `auto` in it."""
    # How often it is to print of itself: accelerate says never, as infinity.
    return {
        name: plain(value) for name, value in engine.deepspeed_config.items() if name != "steps_per_print"
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
