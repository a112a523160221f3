"""Plain TRL training, timed with a plain clock: what the instrument's figures are held against.

The trainer is made from the same configuration as a trial's; nothing that measures is attached to it, and
rows enter in the order of the data, packed ones shuffled.  The C library's allocator is as in a trial's timed
passes: with glibc's own the same training differs by 30 % from process to process (allocator_spread.py), and
would prove nothing.  Time runs from the end of one step to the end of another.  Tokens are summed from the
lengths of the prepared rows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from _common import settings
from _pauses import Pauses

from memsweep.config.schema import TrialConfig


@dataclass(frozen=True, slots=True)
class Timed:
    """What a plain training did while it was timed.

    Attributes:
        seconds: From the end of the first steps to the end of the last, waits left out.
        tokens: Tokens of their rows.
        slots: What the library itself counted as tokens.
        around: Tokens per second around each pause, from the pause before it (or the begin) to the one after
            (or the end): what drifts with the machine drifts for these steps as for what ran in the pause.
    """

    seconds: float
    tokens: int
    slots: int
    around: tuple[float, ...]


@dataclass
class StepClock:
    """Notes when each step ended; the time of pauses is taken out.

    Attributes:
        ends: Seconds at the end of each step, from the first on.
        pause_after: Steps after which the training stops.
        pauses: How it stops.
        clock: Returns seconds.
    """

    ends: list[float] = field(default_factory=list)
    pause_after: frozenset[int] = frozenset()
    pauses: Pauses | None = None
    clock: Callable[[], float] = time.perf_counter
    _waited: float = 0.0

    def step_ended(self) -> None:
        """Note a step's end, then stop if that is wanted here."""
        self.ends.append(self.clock() - self._waited)
        if self.pauses is not None and len(self.ends) in self.pause_after:
            began = self.clock()
            self.pauses.wait()
            self._waited += self.clock() - began

    def seconds(self, first: int) -> float:
        """Return the time from the end of step `first`, counted from 1, to the end of the last."""
        return self.ends[-1] - self.ends[first - 1]


def even_steps(n_steps: int, n_first: int, n_pauses: int) -> frozenset[int]:
    """Return the steps after which to pause: after the first ones, none at the very end, evenly apart."""
    timed = n_steps - n_first
    return frozenset(n_first + round(timed * (place + 1) / (n_pauses + 1)) for place in range(n_pauses))


def stretches(
    ends: Sequence[float], step_tokens: Sequence[int], first: int, pause_after: Sequence[int]
) -> tuple[float, ...]:
    """Return tokens per second around each pause.

    Args:
        ends: Seconds at the end of each step, pauses left out.
        step_tokens: Tokens of each step.
        first: The step after which time counts.
        pause_after: The steps after which there were pauses, in order.
    """
    edges = [first, *pause_after, len(ends)]
    return tuple(
        sum(step_tokens[begin:end]) / (ends[end - 1] - ends[begin - 1])
        for begin, end in zip(edges, edges[2:], strict=False)
    )


def dealt(rows: Sequence[Any], n_parts: int, seed: int, batch: int) -> list[Any]:
    """Return the rows in parts that are alike: each has short and long ones, and is padded as most are.

    So a stretch of the training is no easier than another.
    """
    from memsweep.data.probe import typical_order
    from memsweep.data.rows import length

    by_length = sorted(rows, key=length)
    parts = [typical_order(by_length[part::n_parts], seed + part, batch) for part in range(n_parts)]
    return [row for part in parts for row in part]


def packed_order(n_rows: int, seed: int) -> list[int]:
    """Return an order of packed rows, which come sorted by how full they are.

    A training shuffles them; as they come, the full ones would all be first.
    """
    return random.Random(seed).sample(range(n_rows), n_rows)


def plain_training(
    config: TrialConfig,
    folder: Path,
    *,
    n_examples: int,
    seed: int,
    n_first: int,
    n_parts: int,
    pauses: Pauses,
) -> Timed:
    """Train in this process, which must have been made for it.

    Args:
        config: The set-up.
        folder: Where the trainer may write.
        n_examples: Source examples, at even quantiles of length.
        seed: Decides their order.
        n_first: Steps before time runs, at most a quarter of all.
        n_parts: Parts of the examples that are alike (`dealt`).
        pauses: Where to stop.
    """
    import datasets
    import torch
    import transformers

    from memsweep.data.probe import probe
    from memsweep.machine import Device, device, n_cores
    from memsweep.measure.allocator import loosen
    from memsweep.trainers.build import build
    from memsweep.trial.data import trial_request

    loosen()
    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    where, _ = device(config.launch.device)
    request, _ = trial_request(config, settings(config), where, folder)
    examples = probe(config.dataset, config.trainer.data, n_examples, seed, batch=config.trainer.batch)
    rows_in_order = dealt(examples.rows, n_parts, seed, config.trainer.batch)
    data = datasets.Dataset.from_list(rows_in_order)
    request = replace(request, data=data, longest=None)
    if where is Device.CPU:
        torch.set_num_threads(config.launch.threads or n_cores())
    trainer = build(request).trainer
    trainer.args.num_train_epochs, trainer.args.max_steps = 1, -1
    trainer.args.include_num_input_tokens_seen = "all"
    batch = trainer.args.per_device_train_batch_size * trainer.args.gradient_accumulation_steps
    rows = row_tokens(trainer)
    if len(rows) != len(data):
        trainer.row_order = packed_order(len(rows), seed)
        rows = [rows[place] for place in trainer.row_order]
    n_steps = -(-len(rows) // batch)
    first = max(1, min(n_first, n_steps // 4))
    pause_after = even_steps(n_steps, first, pauses.n_pauses)
    clock = StepClock(pauses=pauses, pause_after=pause_after)
    seen = _attach(trainer, clock)
    trainer.train()
    timed = sum(rows[first * batch :])
    of_step = [sum(rows[at : at + batch]) for at in range(0, len(rows), batch)]
    return Timed(
        seconds=clock.seconds(first),
        tokens=timed,
        slots=seen[-1] - seen[first - 1],
        around=stretches(clock.ends, of_step, first, sorted(pause_after)),
    )


def row_tokens(trainer: Any) -> list[int]:
    """Return the tokens that each prepared row puts through the model, from its lengths."""
    data, limit = trainer.train_dataset, getattr(trainer.args, "max_length", None)
    if "input_ids" in data.column_names:
        return [len(ids) for ids in data["input_ids"]]
    prompts = data["prompt_ids"] if "prompt_ids" in data.column_names else [[]] * len(data)
    answers = [
        data[name] for name in ("chosen_ids", "rejected_ids", "completion_ids") if name in data.column_names
    ]
    return [
        sum(_at_most(len(prompt) + len(answer), limit) for answer in sides)
        for prompt, *sides in zip(prompts, *answers, strict=True)
    ]


def _at_most(number: int, limit: int | None) -> int:
    return number if limit is None else min(number, limit)


def _attach(trainer: Any, clock: StepClock) -> Sequence[int]:
    """Let the clock note each step; return where the library's own count is noted at the same moments."""
    from transformers import TrainerCallback

    seen: list[int] = []

    class AtStepEnd(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            del args, control
            seen.append(int(state.num_input_tokens_seen))
            clock.step_ended()

    trainer.add_callback(AtStepEnd())
    return seen
