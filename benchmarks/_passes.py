"""Plain TRL training, pass after pass over the same batches: the trainer, a callback, a plain clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from _common import settings
from _pauses import Pauses
from _plain import row_tokens

from memsweep.config.schema import TrialConfig


@dataclass(frozen=True, slots=True)
class Passes:
    """Passes of one training, timed with a plain clock.

    Attributes:
        seconds: Of each pass.
        examples: Source examples that each trains, what fills its last block among them.
        slots: What the library itself counted as tokens, of each pass.
    """

    seconds: list[float]
    examples: float
    slots: list[int]


def timed_passes(config: TrialConfig, folder: Path, *, pauses: Pauses, is_loose: bool = True) -> Passes:
    """Train plainly in this process, made for it alone; stop after each pass, and leave that time out.

    Args:
        config: The set-up.
        folder: Where the trainer may write.
        pauses: As many as there are to be passes.
        is_loose: Whether the C library's allocator is as in a trial's timed passes, else its own.
    """
    from memsweep.measure.allocator import loosen

    if is_loose:
        loosen()
    trainer, steps = trainer_for_passes(config, folder, pauses.n_pauses)
    trainer.args.include_num_input_tokens_seen = "all"
    tokens = row_tokens(trainer)
    n_rows = len(trainer.row_order) // pauses.n_pauses
    of_pass = sum(tokens[row] for row in trainer.row_order[:n_rows])
    of_all = sum(tokens[row] for row in set(trainer.row_order))
    seconds: list[float] = []
    slots: list[int] = []
    began, seen = time.perf_counter(), 0

    def step_ended(step: int, control: object) -> None:
        nonlocal began, seen
        del control
        if step % steps == 0:
            seconds.append(time.perf_counter() - began)
            slots.append(int(trainer.state.num_input_tokens_seen) - seen)
            pauses.wait()
            began, seen = time.perf_counter(), int(trainer.state.num_input_tokens_seen)

    at_step_ends(trainer, step_ended)
    trainer.train()
    return Passes(seconds, config.measure.probe_examples * of_pass / of_all, slots)


def trainer_for_passes(config: TrialConfig, folder: Path, n_passes: int) -> tuple[Any, int]:
    """Return a built trainer that takes its examples `n_passes` times in one order, and a pass's steps.

    Args:
        config: The set-up.
        folder: Where the trainer may write.
        n_passes: Passes that it trains.
    """
    import datasets
    import torch
    import transformers

    from memsweep.machine import Device, device, n_cores
    from memsweep.trainers.build import build
    from memsweep.trainers.order import block_of
    from memsweep.trial.data import trial_request

    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    where, _ = device(config.launch.device)
    request, _ = trial_request(config, settings(config), where, folder)
    if where is Device.CPU:
        torch.set_num_threads(config.launch.threads or n_cores())
    built = build(replace(request, longest=None))
    block = block_of(built.trainer.args, built.recipe)
    n_blocks = -(-len(built.rows) // block.n_rows)
    rows = [built.rows[place % len(built.rows)] for place in range(n_blocks * block.n_rows)]
    built.trainer.row_order = rows * n_passes
    built.trainer.args.max_steps = n_blocks * block.n_steps * n_passes
    return built.trainer, n_blocks * block.n_steps


def at_step_ends(
    trainer: Any, called: Callable[[int, Any], None], begins: Callable[[], None] | None = None
) -> None:
    """Let `called` be called with the number of each step, as it ends, and with the trainer's control."""
    from transformers import TrainerCallback

    class AtStepEnd(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            del args, state, control
            if begins is not None:
                begins()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            del args
            called(state.global_step, control)
            return control

    trainer.add_callback(AtStepEnd())
