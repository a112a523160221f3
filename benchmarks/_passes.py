"""A trainer that trains pass after pass, and a callback at their edges: what several proofs drive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from _common import settings

from memsweep.config.schema import TrialConfig


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
