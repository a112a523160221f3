"""From what was counted, timed and held to the outcome of a trial that ran to its end, or was cut short."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch

from memsweep.measure.bracket import Bracket
from memsweep.measure.growth import growth
from memsweep.measure.live import LiveTensors
from memsweep.measure.memory import HostMemory, Memory
from memsweep.measure.throughput import Throughput
from memsweep.measure.utilization import model_flops_per_token, peak_flops_per_second
from memsweep.readback.effective import trained_parameters
from memsweep.record.outcome import CutShort, Measured, NonFinite, Outcome
from memsweep.trainers.build import Built
from memsweep.trial.data import Preparation


def measured(
    rates: Throughput,
    bracket: Bracket,
    rows: Preparation,
    memory: Memory,
    built: Built,
    live: LiveTensors | None,
    remarks: Iterable[str | None],
) -> Outcome:
    """Return the measures with their intervals, and what a reader must know of them.

    Args:
        rates: What was counted and timed.
        bracket: After training.
        rows: What preparation made of the examples.
        memory: After training.
        built: The trainer.
        live: What was followed of tensors; None where the device keeps an account of its own.
        remarks: What is to be said besides; None is nothing.
    """
    measures = {
        **rates.measures,
        **memory.measures(),
        **_arithmetic(built, rates, rows),
        **decided(built, rows),
    }
    if live is not None:
        measures["peak_live_tensor_bytes"] = live.peak_bytes
    if bracket.loss is not None:
        measures["loss"] = bracket.loss
    found = growth(bracket.in_use_bytes, round(measures["peak_memory_bytes"]))
    if found is not None:
        measures["growth_bytes_per_pass"] = found.bytes_per_pass
        if found.is_growing and isinstance(memory, HostMemory):
            # The peak on a CPU was taken before the timed passes; CUDA's counts to the end.
            measures["peak_memory_bytes"] += bracket.in_use_bytes[-1] - bracket.in_use_bytes[0]
    infinite = [name for name, value in measures.items() if not math.isfinite(value)]
    if infinite:
        return NonFinite(
            what=f"{infinite[0]} is {measures[infinite[0]]}", step=built.trainer.state.global_step
        )
    said = [*remarks, None if found is None else found.remark]
    return Measured(
        measures=measures,
        intervals=rates.intervals,
        remarks=tuple(remark for remark in said if remark is not None),
    )


def cut_short(
    reason: str,
    rates: Throughput | None,
    peaks: Mapping[str, float],
    built: Built,
    rows: Preparation,
    remarks: Iterable[str] = (),
) -> CutShort:
    """Return what is known of a trial that does not go on.

    Args:
        reason: Why not.
        rates: What was counted and timed; None before the first pass.
        peaks: What is known of its memory.
        built: The trainer.
        rows: What preparation made of the examples.
        remarks: What is to be said besides.
    """
    timed = {} if rates is None else {**rates.measures, **_arithmetic(built, rates, rows)}
    known = {**timed, **peaks, **decided(built, rows)}
    finite = {name: value for name, value in known.items() if math.isfinite(value)}
    return CutShort(reason=reason, measures=finite, remarks=tuple(remarks))


def decided(built: Built, rows: Preparation) -> dict[str, float]:
    """Return the measures that are decided before the first step, exactly."""
    return {
        "trained_parameters": trained_parameters(built.trainer.model),
        "kept_tokens": rows.prepared.tokens,
        "source_tokens": rows.source_tokens,
    }


def _arithmetic(built: Built, rates: Throughput, rows: Preparation) -> dict[str, float]:
    """Return the model's arithmetic per second, and its share of the device's where that is known."""
    trainer = built.trainer
    flops = model_flops_per_token(trainer.model, rows.prepared.mean_length)
    found = {"model_flops_per_second": flops * rates.measures["tokens_per_second"]}
    if trainer.args.device.type == "cuda":
        dtype = (
            torch.float16
            if trainer.args.fp16
            else torch.bfloat16
            if trainer.args.bf16
            else trainer.model.dtype
        )
        peak = peak_flops_per_second(torch.cuda.get_device_name(), dtype)
        if peak is not None:
            found["model_flops_utilization"] = found["model_flops_per_second"] / peak[0]
    return found
