"""How fast did a trial train?

Throughput is real trained tokens per second of wall time over the measured passes: tokens, not padding; all
of a step, not only the model's part.  Beside it stand the rates that do not depend on how examples were cut
or joined: source examples and optimizer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memsweep.measure.bracket import Bracket, Plan
from memsweep.measure.tokens import count


def throughput(bracket: Bracket, plan: Plan, n_examples: int) -> dict[str, float]:
    """Return what was counted and timed.

    Args:
        bracket: After training.
        plan: That it ran.
        n_examples: Source examples of a pass, those too that the trainer left out.
    """
    seconds, counted = bracket.seconds, bracket.counted
    found: dict[str, float] = {
        "tokens_per_second": counted.tokens / seconds,
        "samples_per_second": n_examples * plan.measured_passes / seconds,
        "steps_per_second": plan.n_measured_steps / seconds,
        "measured_seconds": seconds,
        "n_measured_steps": plan.n_measured_steps,
        "trained_tokens": counted.tokens / plan.measured_passes,
        "slots_per_pass": counted.slots / plan.measured_passes,
        "padding_share": 1 - counted.tokens / counted.slots if counted.slots else 0.0,
    }
    return found if bracket.loss is None else {**found, "loss": bracket.loss}


def kept_tokens(trainer: Any) -> int:
    """Return the tokens that one pass trains on, without training: from the prepared rows, as collated.

    Args:
        trainer: Of a kind that trains on its data's own text; what others generate is not there yet.
    """
    collate, rows = trainer.data_collator, trainer.train_dataset
    micro = trainer.args.per_device_train_batch_size
    trainer._set_signature_columns_if_needed()
    wanted = trainer._signature_columns or rows.column_names
    rows = rows.select_columns([name for name in rows.column_names if name in wanted])
    total = 0
    for first in range(0, len(rows), micro):
        batch: Mapping[str, Any] = collate([rows[i] for i in range(first, min(first + micro, len(rows)))])
        total += int(count(batch)[0])
    return total
