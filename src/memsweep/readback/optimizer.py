"""What is an optimizer, and is it the one that was asked for?

Bits of state are read before there is any: from the rules by which bitsandbytes makes it in the first step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memsweep.readback.plain import plain
from memsweep.readback.shares import n_numbers, updated

# bitsandbytes pages nothing smaller.  Source: bitsandbytes==0.50.2 optim/optimizer.py get_state_buffer
_SMALLEST_PAGED = 100_000

# What a factory of optimizers takes beside their numbers.
_NOT_NUMBERS = ("params", "optimizer_dict")


def innermost(optimizer: Any) -> Any:
    """Return the optimizer inside those that accelerate and DeepSpeed wrap it in."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def planned_states(wrapped: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield size, bits of state and whether that is paged, for each tensor that bitsandbytes trains.

    An engine that shards hands it parts of weights laid end to end, which it takes for any other tensor.

    The state is made in the first step; these are the optimizer's own rules for it.
    Source: bitsandbytes==0.50.2 optim/optimizer.py get_config, init_state, get_state_buffer
    """
    optimizer = innermost(wrapped)
    manager = optimizer.mng
    bits = {id(getattr(part, name)): config for part, name, config in manager.module_weight_config_triple}
    bits.update(manager.pid2config)
    for tensor in updated(wrapped):
        size = tensor.numel()
        own = bits.get(id(tensor), {}).get("optim_bits", optimizer.args.optim_bits)
        is_paged = optimizer.is_paged and tensor.device.type != "cpu" and size >= _SMALLEST_PAGED
        yield size, 32 if size < optimizer.args.min_8bit_size else own, is_paged


def has_planned_states(optimizer: Any) -> bool:
    """Tell whether `planned_states` knows this kind of optimizer."""
    return hasattr(optimizer, "mng") and hasattr(getattr(optimizer, "args", None), "optim_bits")


def optimizer_facts(optimizer: Any) -> dict[str, Any]:
    """Return what an optimizer is, and in how many bits it keeps how many numbers."""
    inner = innermost(optimizer)
    groups = [
        {"numbers": sum(n_numbers(p) for p in group["params"]), **_hyperparameters(group)}
        for group in inner.param_groups
    ]
    states: Counter[str] = Counter()
    if has_planned_states(inner):
        for size, bits, is_paged in planned_states(optimizer):
            states[f"{bits} bits{', paged' if is_paged else ''}"] += size
    return {
        "class": f"{type(inner).__module__}.{type(inner).__qualname__}",
        "defaults": plain(inner.defaults),
        "groups": groups,
        "paged": bool(getattr(inner, "is_paged", False)),
        "bits": plain(getattr(getattr(inner, "args", None), "optim_bits", None)),
        "states": dict(sorted(states.items())),
    }


def _hyperparameters(group: Mapping[str, Any]) -> dict[str, Any]:
    # The learning rate of the moment is the scheduler's.
    return {name: plain(value) for name, value in sorted(group.items()) if name not in ("params", "lr")}


def optimizer_differences(trainer: Any) -> Iterable[str]:
    """Yield a sentence where the optimizer is not of the class and numbers that the arguments mean.

    What they mean is what transformers maps them to.  Without an optimizer there is nothing to compare.
    """
    if trainer.optimizer is None:
        return
    optimizer = innermost(trainer.optimizer)
    label = f"optim={plain(trainer.args.optim)} was asked for"
    try:
        wanted, keywords = trainer.get_optimizer_cls_and_kwargs(trainer.args)
    except ValueError:  # it belongs to a model, and asking with the model would put its hooks there twice
        return
    if isinstance(wanted, type) and type(optimizer) is not wanted:
        yield f"{label}, {_name(wanted)}; the optimizer is {_name(type(optimizer))}"
        return
    for name, value in keywords.items():
        found = _numbers(optimizer, name)
        wrong = [plain(one) for one in found if plain(one) != plain(value)]
        if name not in _NOT_NUMBERS and wrong:
            yield f"{label} with {name}={plain(value)}; the optimizer has {name}={wrong[0]}"
    if has_planned_states(optimizer):
        yield from _state_differences(label, trainer.optimizer)


def _state_differences(label: str, wrapped: Any) -> Iterable[str]:
    """Say when an optimizer of few bits, or a paged one, keeps no tensor's state so."""
    optimizer, states = innermost(wrapped), list(planned_states(wrapped))
    if optimizer.args.optim_bits < 32 and not any(bits < 32 for _, bits, _ in states):
        least = optimizer.args.min_8bit_size
        yield (
            f"{label}; all state is kept in 32 bits: no trained tensor but embeddings has {least:,} numbers, "
            f"the largest has {max((size for size, _, _ in states), default=0):,}"
        )
    if optimizer.is_paged and not any(is_paged for _, _, is_paged in states):
        yield f"{label}; no state is paged: on a cpu, and for tensors of less than 100,000 numbers, none is"


def _numbers(optimizer: Any, name: str) -> list[Any]:
    """Return what the optimizer has under a name: in its defaults, its groups, or itself."""
    # The learning rate of a group is the scheduler's.
    groups = [] if name == "lr" else [group[name] for group in optimizer.param_groups if name in group]
    defaults = [optimizer.defaults[name]] if name in optimizer.defaults else []
    own = [
        getattr(holder, name)
        for holder in (optimizer, getattr(optimizer, "args", None))
        if hasattr(holder, name)
    ]
    return [*defaults, *groups, *own]


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
