"""What happens at the edges between a training's steps: parts of memory, timed windows, losses.

Which step is which edge is the schedule's (`memsweep.measure.schedule`).  A window's time runs from the end
of a step to the end of a step, so that loading, collating and generating are in it, and windows follow each
other without a gap.  The device is waited for at their edges only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from memsweep.measure.memory import Memory, Part
from memsweep.measure.meter import Meter, Reading
from memsweep.measure.schedule import Schedule
from memsweep.measure.steady import SteadyState, Window


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
    """Runs a schedule: knows when the timed windows begin and end, and what was counted in them.

    Attributes:
        loss: Mean of the last window's losses; None before there was one.
        evaluation_loss: Of the one evaluation; None when there was none.
        in_use_bytes: Memory in use at each edge of the windows, one more than there are windows.

    Args:
        schedule: The steps.
        steady: Takes the windows and tells when there are enough.
        memory: What takes the peak.
        ready: Called when all is prepared, before the first step; returns what counts.
        settling: Called when memory is known; what it returns is entered for the settling block.
        measuring: Called when the timed windows begin.
        timed: Called after each window that others are to follow; what it raises ends the training.
        clock: Returns seconds.
        agreed: Takes a window of this process and returns that of all processes of the trial.
    """

    def __init__(
        self,
        schedule: Schedule,
        steady: SteadyState,
        memory: Memory,
        ready: Callable[[], Meter],
        settling: Callable[[], AbstractContextManager[object]],
        measuring: Callable[[], None],
        timed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
        agreed: Callable[[Window], Window] = lambda window: window,
    ) -> None:
        self._schedule, self._steady, self._memory, self._clock = schedule, steady, memory, clock
        self._ready, self._settling, self._measuring, self._timed = ready, settling, measuring, timed
        self._agreed = agreed
        self._during_settling = ExitStack()
        self._meter: Meter | None = None
        self._edge: tuple[float, Reading] | None = None
        self.loss: float | None = None
        self.evaluation_loss: float | None = None
        self.in_use_bytes: list[int] = []
        self.is_complete = False

    def close(self) -> None:
        """Stop counting and following, wherever the training was."""
        self._during_settling.close()
        if self._meter is not None:
            self._meter.close()

    def done(self) -> Reading:
        """Return what was done until now; to be asked between steps."""
        assert self._meter is not None
        self._memory.wait()
        return self._meter.now()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let counting begin: model, optimizer and checkpointing are now as they will be in every step."""
        del args, state, control
        self._meter = self._ready()
        self._memory.check()
        self._memory.enter(Part.FIRST_STEP)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Do what belongs to the edge that this step is, if it is one."""
        del args
        step, schedule = state.global_step, self._schedule
        self._memory.check()
        control.should_evaluate = schedule.evaluates and step == schedule.first_block_end
        if step == schedule.first_block_end:
            self._memory.enter(Part.EVALUATION if schedule.evaluates else self._after_first)
        elif step == schedule.worst_block_end:
            self._memory.enter(Part.STEADY)
        if step == schedule.memory_end:
            self._memory.wait()
            self._memory.settle()
            self._during_settling.enter_context(self._settling())
        if schedule.is_edge(step):
            self._at_edge(step, control)
        # The first loss, because a loss that is NaN mostly is so at once; then one an edge.
        control.should_log = schedule.is_edge(step) or step in (1, schedule.worst_block_end)
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
        self._memory.enter(self._after_first)

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

    @property
    def _after_first(self) -> Part:
        return Part.WORST_STEP if self._schedule.longest else Part.STEADY

    def _at_edge(self, step: int, control: TrainerControl) -> None:
        """End the window that ends here, and begin the next, unless there are enough."""
        assert self._meter is not None
        if step == self._schedule.first_edge:
            self._during_settling.close()
            self._measuring()
        self._memory.wait()
        reading, now = self._meter.now(), self._clock()
        self.in_use_bytes.append(self._memory.in_use_bytes())
        if self._edge is not None:
            before, read = self._edge
            is_enough = self._steady.add(self._agreed(Window(now - before, reading - read)))
            self.is_complete = is_enough or step == self._schedule.last_edge
            control.should_training_stop = self.is_complete
            if not self.is_complete:
                self._timed()
        self._edge = now, reading
