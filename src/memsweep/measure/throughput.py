"""How fast did a trial train?

Throughput is real trained tokens per second of wall time over the windows that count: tokens, not padding;
all of a step, not only the model's part.  Tokens that pad a batch are work that nobody asked for, so a rate
of slots would rise where examples are padded more.  Beside it stand the rates that do not depend on how
examples were cut or joined: source examples and optimizer steps.

Source: the definition is this project's; what others call tokens per second mostly counts slots, e.g.
transformers==5.24.0 `train_tokens_per_second` with include_num_input_tokens_seen="all".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memsweep.measure.prepared import Prepared
from memsweep.measure.schedule import Schedule
from memsweep.measure.steady import SteadyState, Window, estimate


@dataclass(frozen=True, slots=True)
class Throughput:
    """What was counted and timed.

    Attributes:
        measures: Name to number.
        intervals: Name to 95 % confidence interval, of the rates.
    """

    measures: dict[str, float]
    intervals: dict[str, tuple[float, float]]


def throughput(
    steady: SteadyState, schedule: Schedule, n_examples: int, prepared: Prepared, *, is_packed: bool
) -> Throughput:
    """Return the rates over the windows that count.

    Args:
        steady: After training.
        schedule: What it ran.
        n_examples: Source examples of a pass, those too that preparation left out.
        prepared: What the rows of a pass hold.
        is_packed: A row may hold several examples.
    """
    windows = steady.measured
    per_row = n_examples / len(schedule.rows)
    # Rows that fill up a pass count again.  Packed rows are unlike each other: there, tokens tell examples.
    per_token = n_examples / prepared.tokens if is_packed and prepared.tokens else 0.0
    label_share = prepared.label_share
    amounts: dict[str, Callable[[Window], float]] = {
        "tokens": lambda window: window.tokens,
        "samples": lambda window: (
            window.tokens * per_token if is_packed else per_row * schedule.rows_per_pass
        ),
        "slots": lambda window: window.done.counted.slots,
        "steps": lambda _: schedule.steps_per_pass,
    }
    if label_share is not None:
        amounts["supervised_tokens"] = lambda window: window.tokens * label_share
    seconds = sum(window.seconds for window in windows)
    totals = {name: sum(map(amount, windows)) for name, amount in amounts.items()}
    found = {f"{name}_per_second": total / seconds for name, total in totals.items()}
    intervals = {
        f"{name}_per_second": (known.low, known.high)
        for name, amount in amounts.items()
        if (known := estimate(windows, amount)) is not None
    }
    found |= {
        "measured_seconds": seconds,
        "n_measured_passes": len(windows),
        "n_warm_up_passes": steady.n_warm_up,
        "n_measured_steps": schedule.steps_per_pass * len(windows),
        "trained_tokens": totals["tokens"] / len(windows),
        "slots_per_pass": totals["slots"] / len(windows),
        "padding_share": 1 - totals["tokens"] / totals["slots"] if totals["slots"] else 0.0,
    }
    return Throughput(found | _generation(windows, seconds), intervals)


def _generation(windows: Any, seconds: float) -> dict[str, float]:
    """Return what was generated, and the share of time that it took; nothing where nothing was."""
    tokens = sum(window.done.generated.tokens for window in windows)
    if not tokens:
        return {}
    generating = sum(window.done.generated.seconds for window in windows)
    found = {
        "generated_tokens_per_second": tokens / seconds,
        "generation_share": generating / seconds,
        "generation_tokens_per_second": tokens / generating,
    }
    gathers = [n for window in windows if (n := window.done.generated.gathers) is not None]
    if gathers:
        found["n_generations"] = sum(window.done.generated.calls for window in windows)
        found["n_parameter_gathers"] = sum(gathers)
    return found
