"""Does the instrument tell the truth on one NVIDIA GPU?

    python benchmarks/gpu/measure.py              about five minutes; needs the packages of requirements.lock
    python benchmarks/gpu/measure.py --only budget

    edges        an edge waits for the device: products that were only launched are wholly in their window
    generation   time in `generate`, by events in the stream, against a clock with the device waited for
    memory       of a trial: allocated <= reserved <= what the driver says of the process, less its context
    phases       each part of a trial has a peak, none above the trial's own, the highest equal to it
    host         peak of host memory and of pinned memory are there
    budget       a trial is out of memory at 0.9 of its peak allocated, and runs at 1.05 of its reserved
    utilization  the share of the device's arithmetic is there, and is a share

A row that says PASS held.  Exit code 0 when all passed, 1 when one did not, 2 where there is no CUDA device.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _common import (
    NOTHING_VERIFIED,
    Bars,
    Bench,
    Progress,
    bench,
    composed,
    measures_of,
    parser,
)

from memsweep.config.schema import BudgetConfig, TrialConfig
from memsweep.record.outcome import Measured, OutOfMemory
from memsweep.units import GIB, MIB, bytes_text

LEAST_SHARE_IN_WINDOW = 0.98
GENERATION_SHARE = 0.05
# A context with the libraries' code: 300 to 700 MiB of what the driver says is none of PyTorch's allocator.
MOST_CONTEXT_BYTES = 2 * GIB
OF_ALLOCATED, OF_RESERVED = 0.9, 1.05

TRIAL = (
    *("model=small", "model.geometry.hidden_size=1024", "model.geometry.intermediate_size=2816"),
    *("model.geometry.num_hidden_layers=12", "model.geometry.num_attention_heads=16"),
    *("model.geometry.num_key_value_heads=4", "trainer.batch=8", "measure.probe_examples=32"),
    *("measure=quick", "launch.device=cuda", "tracking=none"),
)
"""0.2 thousand million parameters: seconds a trial, and tensors far above the allocator's granularity."""


def main() -> int:
    """Run the checks and print the table."""
    command = parser(__doc__)
    command.add_argument("--only", default="", choices=["", *CHECKS], help="one of the checks")
    asked = command.parse_args()
    if not has_device():
        print("no CUDA device: nothing verified")
        return NOTHING_VERIFIED
    table, progress = Table(), Progress()
    with bench() as here:
        for name, check in CHECKS.items():
            if asked.only in ("", name):
                progress.say(name)
                try:
                    check(here, table)
                except Exception as error:  # a check that cannot run must not hide the others
                    table.row(name, passed=False, figure=f"{type(error).__name__}: {error}")
    print(f"{progress.seconds:.0f} s")
    return table.bars.exit_code


def has_device() -> bool:
    """Tell whether there is a CUDA device; makes no context, which a fork could not inherit."""
    from memsweep.machine import compute_capability

    return compute_capability() is not None


class Table:
    """Rows of what was checked.

    Attributes:
        bars: What did not hold.
    """

    def __init__(self) -> None:
        self.bars = Bars()

    def row(self, name: str, *, passed: bool, figure: str) -> None:
        """Print a row."""
        print(f"{'PASS' if passed else 'FAIL'}  {name:44s} {figure}", flush=True)
        if not passed:
            self.bars.failed.append(name)


def edges(here: Bench, table: Table) -> None:
    """An edge that did not wait would read a few milliseconds."""
    launched, window, truth = here.child(composed(*TRIAL), _long_kernel)
    figure = f"launching {launched:.4f} s, window {window:.3f} s, by events {truth:.3f} s"
    waits = window >= LEAST_SHARE_IN_WINDOW * truth
    table.row("an edge waits for the device", passed=waits and launched < 0.5 * truth, figure=figure)


def _long_kernel(config: TrialConfig, folder: Path) -> tuple[float, float, float]:
    """Return seconds to launch a chain of products, until the edge after it, and on the device."""
    import torch

    from memsweep.measure.device import DeviceMemory

    del config, folder
    memory = DeviceMemory()
    matrix = torch.randn(8192, 8192, device="cuda")
    out = torch.empty_like(matrix)
    torch.mm(matrix, matrix, out=out)  # loads the library
    memory.wait()
    event: Any = torch.cuda.Event
    first, last = event(enable_timing=True), event(enable_timing=True)
    began = time.perf_counter()
    first.record()
    for _ in range(30):
        torch.mm(matrix, matrix, out=out)
    last.record()
    launched = time.perf_counter() - began
    memory.wait()
    window = time.perf_counter() - began
    return launched, window, first.elapsed_time(last) / 1000


def generation(here: Bench, table: Table) -> None:
    """What the watch reads without waiting against a clock that waits before and after."""
    watched, clocked, tokens = here.child(composed(*TRIAL), _generations)
    away = watched / clocked - 1
    figure = f"{watched:.3f} s by events, {clocked:.3f} s by a clock, {away:+.1%}"
    table.row("generation is timed", passed=abs(away) <= GENERATION_SHARE, figure=figure)
    table.row(
        "generated tokens are counted", passed=tokens == 8 * 64 * 4, figure=f"{tokens:,} of {8 * 64 * 4:,}"
    )


def _generations(config: TrialConfig, folder: Path) -> tuple[float, float, int]:
    """Return seconds in generating by the watch, by a clock, and the tokens, of four batches."""
    import torch
    from transformers import AutoModelForCausalLM

    from memsweep.measure.generation import GenerationWatch
    from memsweep.model.folder import model_place

    del folder
    place = model_place(config.model)
    model = AutoModelForCausalLM.from_pretrained(place.name, dtype=torch.bfloat16).cuda()
    ids = torch.randint(10, 1000, (8, 32), device="cuda")
    how = {
        "max_new_tokens": 64,
        "min_new_tokens": 64,
        "do_sample": True,
        "attention_mask": torch.ones_like(ids),
    }
    model.generate(ids, **how)  # loads the libraries
    watch = GenerationWatch(model)
    seconds = 0.0
    for _ in range(4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        model.generate(ids, **how)
        torch.cuda.synchronize()
        seconds += time.perf_counter() - began
    found = watch.now()
    return found.seconds, seconds, found.tokens


def memory(here: Bench, table: Table) -> None:
    """The three accounts of a trial's memory contain each other, and so do its phases'."""
    found = _measured(here)
    allocated, reserved = found["peak_allocated_bytes"], found["peak_memory_bytes"]
    requested = found["peak_requested_bytes"]
    figure = f"{bytes_text(requested)} <= {bytes_text(allocated)} <= {bytes_text(reserved)}"
    table.row("requested <= allocated <= reserved", passed=requested <= allocated <= reserved, figure=figure)
    process = found.get("peak_process_bytes")
    if process is None:
        table.row("the driver's account", passed=False, figure="the driver says nothing of this process")
    else:
        context = process - reserved
        figure = f"process {bytes_text(process)}, so beside the allocator {bytes_text(context)}"
        table.row(
            "reserved <= process, less a context", passed=0 < context <= MOST_CONTEXT_BYTES, figure=figure
        )


def phases(here: Bench, table: Table) -> None:
    """Each part has its own peak."""
    found = _measured(here)
    parts = {
        name: found[f"{name}_peak_bytes"]
        for name in ("load", "first_step", "worst_step", "steady")
        if f"{name}_peak_bytes" in found
    }
    training = [peak for name, peak in parts.items() if name != "load"]
    figure = ", ".join(f"{name} {bytes_text(peak)}" for name, peak in parts.items())
    is_whole = len(parts) >= 3 and all(parts.values()) and max(training) == found["peak_memory_bytes"]
    table.row("each part has a peak, the highest is the trial's", passed=is_whole, figure=figure)


def host(here: Bench, table: Table) -> None:
    """Memory of the host beside the device's."""
    found = _measured(here)
    host_bytes, pinned = found.get("host_peak_bytes", 0.0), found.get("host_pinned_bytes")
    table.row("peak of host memory", passed=host_bytes > MIB, figure=bytes_text(host_bytes))
    text = "not said" if pinned is None else bytes_text(pinned)
    table.row("peak of pinned memory", passed=pinned is not None and pinned <= host_bytes + GIB, figure=text)


def budget(here: Bench, table: Table) -> None:
    """The emulated budget refuses what a device of that size would."""
    found = _measured(here)
    config = composed(*TRIAL)

    def outcome(n_bytes: float) -> object:
        limited = replace(config, budget=BudgetConfig(name="proof", memory_bytes=int(n_bytes)))
        return here.trial(limited).outcome

    small, large = OF_ALLOCATED * found["peak_allocated_bytes"], OF_RESERVED * found["peak_memory_bytes"]
    ended = outcome(small)
    figure = f"{bytes_text(small)}: {ended.text}"  # type: ignore[attr-defined]
    table.row("fails at 0.9 of its peak allocated", passed=isinstance(ended, OutOfMemory), figure=figure)
    ended = outcome(large)
    figure = f"{bytes_text(large)}: {ended.text}"  # type: ignore[attr-defined]
    table.row("runs at 1.05 of its peak reserved", passed=isinstance(ended, Measured), figure=figure)


def utilization(here: Bench, table: Table) -> None:
    """Model FLOPs utilization; and that the same trial twice reads the same."""
    first, second = _measured(here), measures_of(here.trial(composed(*TRIAL)), "again")
    share = first.get("model_flops_utilization")
    text = "the device is not in the table" if share is None else f"{share:.1%}"
    table.row("model FLOPs utilization", passed=share is not None and 0 < share < 1, figure=text)
    speeds = [one["tokens_per_second"] for one in (first, second)]
    away = abs(speeds[0] - speeds[1]) / statistics.fmean(speeds)
    figure = f"{speeds[0]:,.0f} and {speeds[1]:,.0f} tokens/s, {away:.1%} apart"
    table.row("the same trial twice, within 5 %", passed=away <= 0.05, figure=figure)
    peaks = [one["peak_memory_bytes"] for one in (first, second)]
    figure = f"{bytes_text(peaks[0])} and {bytes_text(peaks[1])}"
    table.row("the same peak twice, within 2 %", passed=max(peaks) <= 1.02 * min(peaks), figure=figure)


CHECKS: Mapping[str, Callable[[Bench, Table], None]] = {
    "edges": edges,
    "generation": generation,
    "memory": memory,
    "phases": phases,
    "host": host,
    "budget": budget,
    "utilization": utilization,
}

_FOUND: list[Mapping[str, float]] = []


def _measured(here: Bench) -> Mapping[str, float]:
    """Return what one trial measured, which several checks look at."""
    if not _FOUND:
        _FOUND.append(measures_of(here.trial(composed(*TRIAL)), "the trial"))
    return _FOUND[0]


if __name__ == "__main__":
    sys.exit(main())
