"""Is what the trainer's arguments ask for in force, in the trainer, its collator and its rows?

A field is compared wherever a thing of its name is kept.  Fields whose effect is elsewhere have a reading of
their own; what the arguments hold without being asked, a default, is held to the same.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memsweep.readback.effective import SEEN_IN_THE_MODULES
from memsweep.readback.model_facts import learns_a_prompt
from memsweep.readback.optimizer import optimizer_differences
from memsweep.readback.plain import plain
from memsweep.readback.trainer_facts import (
    LENGTHS,
    callbacks,
    is_compiled,
    mixed_precision,
    offloads_activations,
    zero_stage,
)
from memsweep.technique.work import MICRO
from memsweep.trainers.build import Built

GATHERS = "ds3_gather_for_generation"
"""Whether weights that DeepSpeed holds in parts are made whole to generate.  Source: trl==1.16.0."""

# What stands for the library's own choice.
_LIBRARYS_CHOICE = ("auto",)

# Whether a way of packing keeps the examples of a row apart.  Source: trl==1.16.0 data_utils.py pack_dataset
_KEEPS_EXAMPLES_APART = {"bfd": True, "bfd_split": True, "wrapped": False}

# Columns of prepared rows that `max_length` bounds where the collator does not cut.
_BOUNDED = ("input_ids", "chosen_ids", "rejected_ids")


def field_differences(built: Built) -> Iterable[str]:
    """Yield a sentence for each field that was asked for and is not kept, or has not the effect it names."""
    for name, asked in built.asked.items():
        if name in SEEN_IN_THE_MODULES or name == "model_init_kwargs" or _is_left_to_the_library(built, name):
            continue
        found = _kept_elsewhere(built, name, asked)
        if found is None and name in _EFFECTS:
            found = _EFFECTS[name](built, asked)
        if found is None and name.startswith("vllm_") and not _is_default(built, name):
            found = None if getattr(built.trainer, "use_vllm", False) else "no vLLM generates"
        if found is not None:
            yield f"{name}={plain(asked)} was asked for; {found}"


def trainer_differences(built: Built) -> Iterable[str]:
    """Yield a sentence for each thing that the arguments hold, by default too, and the trainer has not."""
    trainer, arguments = built.trainer, built.trainer.args
    wanted = "fp16" if arguments.fp16 else "bf16" if arguments.bf16 else "no"
    if mixed_precision(trainer) != wanted:
        yield f"mixed precision {wanted} was asked for; the model computes in {mixed_precision(trainer)}"
    if bool(arguments.torch_compile) != is_compiled(trainer):
        state = "is compiled" if is_compiled(trainer) else "is not compiled"
        yield f"torch_compile={bool(arguments.torch_compile)} was asked for; the model {state}"
    yield from _batch_differences(built)
    yield from optimizer_differences(trainer)


def _kept_elsewhere(built: Built, name: str, asked: Any) -> str | None:
    """Say what the first place that keeps another value has; None when all that keep it agree."""
    trainer = built.trainer
    for place, holder in (
        (f"arguments of {type(trainer).__name__} have", trainer.args),
        ("trainer has", trainer),
        ("collator has", trainer.data_collator),
    ):
        found = plain(getattr(holder, name, asked))
        if holder is not trainer.args and not (found is None or isinstance(found, bool | int | float | str)):
            continue
        if not _holds(found, plain(asked)):
            return f"the {place} {found}"
    return None


def _holds(found: Any, asked: Any) -> bool:
    """Tell whether what was found is what was asked, in the forms that config classes turn it into."""
    if isinstance(asked, str) and isinstance(found, Mapping):
        asked = json.loads(asked)
    if isinstance(asked, str) and isinstance(found, list):
        return found == asked.split() or found == [asked] or (asked == "none" and not found)
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        return all(key in found and _holds(found[key], value) for key, value in asked.items())
    return bool(found == asked)


def _is_left_to_the_library(built: Built, name: str) -> bool:
    """Tell whether what was asked is that the library choose."""
    asked = built.asked[name]
    return (isinstance(asked, str) and asked in _LIBRARYS_CHOICE) or (
        asked is None and _is_default(built, name)
    )


def _is_default(built: Built, name: str) -> bool:
    defaults = {entry.name: entry.default for entry in dataclasses.fields(built.recipe.config_class)}
    return bool(plain(defaults.get(name)) == plain(built.asked[name]))


def _packing(built: Built, asked: Any) -> str | None:
    trainer = built.trainer
    rows, columns = trainer.train_dataset, trainer.train_dataset.column_names
    if not asked:
        return "its rows hold several examples each" if LENGTHS in columns else None
    strategy = getattr(trainer.args, "packing_strategy", None)
    if _KEEPS_EXAMPLES_APART.get(str(strategy), LENGTHS in columns):
        if LENGTHS not in columns:
            return f"the rows have no {LENGTHS}"
        return _padding_free(built, asked)
    if LENGTHS in columns:
        return f"packing_strategy={strategy} keeps no {LENGTHS}, and the rows have them"
    shorter = [n for n in map(len, rows["input_ids"]) if n < trainer.args.max_length]
    return f"{len(shorter)} rows are not full" if len(shorter) > 1 else None


def _evaluation_packing(built: Built, asked: Any) -> str | None:
    rows = getattr(built.trainer, "eval_dataset", None)
    if rows is None or isinstance(rows, Mapping) or asked is None:
        return None
    has = LENGTHS in rows.column_names
    return None if has == bool(asked) else f"the evaluation's rows are {'packed' if has else 'not packed'}"


def _padding_free(built: Built, asked: Any) -> str | None:
    has = bool(getattr(built.trainer.data_collator, "padding_free", False))
    # Source: peft==0.21.2 peft_model.py: Position ids are not supported ... Ignoring position ids.
    if has and asked and learns_a_prompt(built.trainer.model):
        return "the adapter drops the position ids that keep the examples of a row apart"
    return None if has == bool(asked) else f"the collator {'flattens' if has else 'pads'} its rows"


def _max_length(built: Built, asked: Any) -> str | None:
    trainer = built.trainer
    if asked is None or hasattr(trainer.data_collator, "max_length"):
        return None
    rows = trainer.train_dataset
    lengths = [len(ids) for name in _BOUNDED if name in rows.column_names for ids in rows[name]]
    return f"a row has {max(lengths)} tokens" if max(lengths, default=0) > asked else None


def _pads(built: Built, asked: Any) -> str | None:
    holders = (built.trainer, built.trainer.data_collator)
    knows = asked is None or any(hasattr(holder, "pad_to_multiple_of") for holder in holders)
    return None if knows else "nothing pads to it"


def _reference_ahead(built: Built, asked: Any) -> str | None:
    columns = [
        name
        for name in built.trainer.train_dataset.column_names
        if name.startswith("ref_") and name.endswith("logps")
    ]
    if not asked:
        return f"the rows have {', '.join(columns)}" if columns else None
    if not columns:
        return "the rows have no log-probabilities of the reference"
    return "a reference model is held" if getattr(built.trainer, "ref_model", None) is not None else None


def _synchronized(built: Built, asked: Any) -> str | None:
    has = any("SyncRefModel" in name for name in callbacks(built.trainer))
    return None if has == bool(asked) else f"{'a' if has else 'no'} callback copies weights to the reference"


def _generates_with_vllm(built: Built, asked: Any) -> str | None:
    names = ("vllm_generation", "vllm_client", "llm")
    has = any(getattr(built.trainer, name, None) is not None for name in names)
    return None if has == bool(asked) else f"{'a' if has else 'no'} vLLM is there"


def _gathers(built: Built, asked: Any) -> str | None:
    if asked or zero_stage(built.trainer) == 3:
        return None
    return "weights are not sharded by ZeRO-3, so there is nothing to gather"


def gathering_differences(built: Built, n_generations: int, n_whole: int | None) -> Iterable[str]:
    """Yield a sentence where completions were not generated on weights as they were to be held.

    Args:
        built: The trainer, after its first steps.
        n_generations: How often it has generated.
        n_whole: How often on whole weights; None where weights are never in parts.
    """
    asked = getattr(built.trainer.args, GATHERS, None)
    if asked is None or n_whole is None or n_whole == (n_generations if asked else 0):
        return
    found = f"{n_whole} of {n_generations} generations were on whole weights"
    yield f"{GATHERS}={bool(asked)} was asked for; {found}"


def _offloads(built: Built, asked: Any) -> str | None:
    has = offloads_activations(built.trainer)
    return None if has == bool(asked) else f"activations {'leave' if has else 'stay on'} the device"


def _empties_cache(built: Built, asked: Any) -> str | None:
    if asked is not None and built.trainer.args.device.type == "cpu":
        return "torch keeps no cache of a cpu's memory"
    return _comes_in_time(built, asked)


def _comes_in_time(built: Built, asked: Any) -> str | None:
    """Judge a number of steps after which something happens."""
    steps = built.trainer.args.max_steps
    return f"the trial has {steps} steps" if asked is not None and 0 < steps < asked else None


def _engine(kind: str) -> Callable[[Built, Any], str | None]:
    def check(built: Built, asked: Any) -> str | None:
        found = str(plain(built.trainer.accelerator.distributed_type))
        return f"accelerate has {found}" if asked and found != kind else None

    return check


_EFFECTS: Mapping[str, Callable[[Built, Any], str | None]] = {
    "activation_offloading": _offloads,
    "deepspeed": _engine("DEEPSPEED"),
    GATHERS: _gathers,
    "eval_packing": _evaluation_packing,
    "fsdp": _engine("FSDP"),
    "max_length": _max_length,
    "packing": _packing,
    "pad_to_multiple_of": _pads,
    "padding_free": _padding_free,
    "precompute_ref_log_probs": _reference_ahead,
    "ref_model_sync_steps": _comes_in_time,
    "sync_ref_model": _synchronized,
    "torch_empty_cache_steps": _empties_cache,
    "use_vllm": _generates_with_vllm,
}


def _batch_differences(built: Built) -> Iterable[str]:
    """Compare the micro-batch with what the trainer and its loader take at once."""
    trainer = built.trainer
    micro = getattr(trainer.args, MICRO)
    taken = getattr(trainer, "_train_batch_size", micro)
    if taken != micro:
        yield f"{MICRO}={micro} was asked for; the trainer takes {taken} at once"
        return
    loader = getattr(trainer.callback_handler, "train_dataloader", None)
    total = getattr(loader, "total_batch_size", None)
    # A trainer that generates for several steps at once loads as many examples at once.
    share = (
        micro * trainer.accelerator.num_processes * (getattr(trainer.args, "steps_per_generation", 1) or 1)
    )
    if total is not None and total != share:
        yield f"{MICRO}={micro} was asked for; the loader takes {total} in all, and not {share}"
