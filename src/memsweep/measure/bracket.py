"""Which steps of a training are counted, and what happens at their edges?

    warm-up passes + 1 step     not timed; the peak of memory on a CPU is taken here.  The one step more lets
                                the first batch meet the optimizer's state, as all others did.
    1 step                      not timed: on a CPU the allocator changes its ways
    measured passes             timed, from the end of a step to the end of a step, so that loading, collating
                                and generating are in it.  Batches come in the same order again and again, so
                                any run of a pass's length holds each exactly once.

Where there are examples to evaluate on, that happens once, after the first step: its memory counts, its time
does not.

The device is waited for at the edges only.  Losses are asked for at edges too, outside the windows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from memsweep.measure.memory import Memory
from memsweep.measure.tokens import TokenCount, TokenCounter


@dataclass(frozen=True, slots=True)
class Plan:
    """How many optimizer steps there are of each kind.

    Attributes:
        steps_per_pass: Steps that train on all examples once.
        warm_up_passes: Passes before the settling.
        measured_passes: Passes that are timed.
        evaluates: Whether the trainer evaluates, once, after the first step.
    """

    steps_per_pass: int
    warm_up_passes: int
    measured_passes: int
    evaluates: bool = False

    @property
    def settled_step(self) -> int:
        """The step after which the allocator changes its ways."""
        return self.warm_up_passes * self.steps_per_pass + 1

    @property
    def first_edge(self) -> int:
        """The step after which time counts."""
        return self.settled_step + 1

    @property
    def last_edge(self) -> int:
        """The step after which all is measured."""
        return self.first_edge + self.n_measured_steps

    @property
    def n_measured_steps(self) -> int:
        """The steps that are timed."""
        return self.measured_passes * self.steps_per_pass


class NonFiniteLoss(Exception):
    """A loss was NaN or infinite.

    Attributes:
        loss: The loss, or its mean since it was last looked at.
        step: The optimizer step at which it was seen.
    """

    def __init__(self, loss: float, step: int) -> None:
        self.loss, self.step = loss, step
        super().__init__(f"loss {loss} in step {step}")


class Bracket(TrainerCallback):  # type: ignore[misc]  # transformers is not followed by the type checker
    """Runs a plan: knows when the timed steps begin and end, and what was counted in them.

    Args:
        plan: The steps.
        memory: What takes the peak.
        ready: Called when all is prepared, before the first step; returns what counts tokens.
        measuring: Called when the timed steps begin.
        clock: Returns seconds.
    """

    def __init__(
        self,
        plan: Plan,
        memory: Memory,
        ready: Callable[[], TokenCounter],
        measuring: Callable[[], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._plan, self._memory, self._clock = plan, memory, clock
        self._ready, self._measuring = ready, measuring
        self._counter: TokenCounter | None = None
        self._began: tuple[float, TokenCount] | None = None
        self._ended: tuple[float, TokenCount] | None = None
        self.loss: float | None = None
        self.evaluation_loss: float | None = None

    @property
    def seconds(self) -> float:
        """The time that the counted steps took."""
        assert self._began is not None
        assert self._ended is not None
        return self._ended[0] - self._began[0]

    @property
    def counted(self) -> TokenCount:
        """What went through the model in the counted steps."""
        assert self._began is not None
        assert self._ended is not None
        return self._ended[1] - self._began[1]

    @property
    def is_complete(self) -> bool:
        """Whether training went on to the last edge."""
        return self._ended is not None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let counting begin: model, optimizer and checkpointing are now as they will be in every step."""
        del args, state, control
        self._counter = self._ready()
        self._memory.check()
        self._memory.begin()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Do what belongs to the edge that this step is, if it is one."""
        del args
        assert self._counter is not None
        step, plan = state.global_step, self._plan
        self._memory.check()
        if step == plan.settled_step:
            self._memory.wait()
            self._memory.settle()
        if step == plan.last_edge:
            self._memory.wait()
            self._ended = (self._clock(), self._counter.now())
            control.should_training_stop = True
        # The first loss, because a loss that is NaN mostly is so at once; then one an edge.
        control.should_log = step in (1, plan.settled_step, plan.last_edge)
        control.should_evaluate = plan.evaluates and step == 1
        if step == plan.first_edge:
            self._measuring()
            self._memory.wait()
            counted = self._counter.now()
            self._began = (self._clock(), counted)
        return control

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Note that there was an evaluation, and hold its memory against the budget."""
        del args, state, control
        self.evaluation_loss = float((metrics or {})["eval_loss"])
        self._memory.check()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Look at the loss.

        Raises:
            NonFiniteLoss: If it is NaN or infinite.
        """
        del args, control
        loss = (logs or {}).get("loss")
        if loss is None:
            return
        self.loss = float(loss)
        if not math.isfinite(self.loss):
            raise NonFiniteLoss(self.loss, state.global_step)
