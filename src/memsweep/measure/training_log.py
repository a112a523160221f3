"""What the trainer says of its training, kept as it says it: loss, norm of the gradient, learning rate.

One JSON object a line, written at once, so that a process that is killed has left what it logged.  The
trainer logs at the edges of the timed windows and nowhere in them (`memsweep.measure.bracket`), so a line
costs each window some ten microseconds, and never one step more than another.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

OF_THE_WHOLE = "train_runtime"
"""Marks the trainer's last words; their rates count every step that there might have been."""


class TrainingLog(TrainerCallback):  # type: ignore[misc]  # transformers is not followed by the type checker
    """Writes the log; it belongs before callbacks that may end the training over what is logged.

    Args:
        file: Where to; what an earlier training left there is removed.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Begin with an empty log."""
        del args, state, control
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.unlink(missing_ok=True)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Write one line: the step, and every number; one that is not finite as text, which JSON needs."""
        del args, control
        if not logs or OF_THE_WHOLE in logs or not state.is_world_process_zero:
            return
        numbers = {
            name: value if math.isfinite(value) else str(value)
            for name, value in logs.items()
            if isinstance(value, int | float)
        }
        line = json.dumps({"step": state.global_step, **numbers}) + "\n"
        with self._file.open("ab", buffering=0) as file:
            file.write(line.encode())
