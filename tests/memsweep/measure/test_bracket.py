from __future__ import annotations

from typing import Any

import pytest
from transformers import TrainerControl, TrainerState

from memsweep.measure.bracket import Bracket, NonFiniteLoss, Plan
from memsweep.measure.throughput import throughput
from memsweep.measure.tokens import TokenCount


class Events:
    """Stands in for memory, counter and clock, and writes down what is asked of it when."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.step = 0

    def __getattr__(self, name: str) -> Any:
        def event(*_: Any) -> None:
            if name != "check":
                self.log.append(f"{self.step} {name}")

        return event

    def now(self) -> TokenCount:
        return TokenCount(tokens=100 * self.step, slots=150 * self.step)

    def clock(self) -> float:
        return 2.0 * self.step


def run(plan: Plan, events: Events) -> tuple[Bracket, list[int]]:
    """Go through the steps of a training as the trainer would, and return when losses were asked for."""
    bracket = Bracket(plan, events, lambda: events, events.measuring, events.clock)  # type: ignore[arg-type,return-value]
    control, state, logged = TrainerControl(), TrainerState(), []
    bracket.on_train_begin(None, state, control)
    while not control.should_training_stop:
        events.step = state.global_step = state.global_step + 1
        control = bracket.on_step_end(None, state, control)
        if control.should_log:
            logged.append(events.step)
    return bracket, logged


def test_a_pass_more_of_memory_then_a_step_to_settle_then_time() -> None:
    plan = Plan(steps_per_pass=3, warm_up_passes=2, measured_passes=2)

    assert (plan.settled_step, plan.first_edge, plan.last_edge) == (7, 8, 14)


def test_the_peak_is_taken_before_time_counts_and_the_device_waited_for_at_edges_only() -> None:
    events = Events()

    run(Plan(steps_per_pass=2, warm_up_passes=1, measured_passes=1), events)

    assert events.log == ["0 begin", "3 wait", "3 settle", "4 measuring", "4 wait", "6 wait"]


def test_time_and_tokens_are_those_between_the_edges() -> None:
    plan = Plan(steps_per_pass=2, warm_up_passes=1, measured_passes=2)

    bracket, _ = run(plan, Events())

    assert bracket.seconds == 8.0
    assert bracket.counted == TokenCount(tokens=400, slots=600)


def test_rates_are_per_second_of_the_counted_steps() -> None:
    plan = Plan(steps_per_pass=2, warm_up_passes=1, measured_passes=2)
    bracket, _ = run(plan, Events())

    found = throughput(bracket, plan, n_examples=8)

    assert found["tokens_per_second"] == 50
    assert found["samples_per_second"] == 2
    assert found["steps_per_second"] == 0.5
    assert found["trained_tokens"] == 200
    assert found["padding_share"] == pytest.approx(1 / 3)


def test_losses_are_asked_for_outside_the_counted_steps() -> None:
    _, logged = run(Plan(steps_per_pass=3, warm_up_passes=1, measured_passes=2), Events())

    assert logged == [1, 4, 11]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_training(loss: float) -> None:
    events = Events()
    bracket = Bracket(Plan(1, 1, 1), events, lambda: events, events.measuring)  # type: ignore[arg-type,return-value]

    with pytest.raises(NonFiniteLoss, match=f"loss {loss} in step 3"):
        bracket.on_log(None, TrainerState(global_step=3), TrainerControl(), {"loss": loss})


def test_evaluation_is_asked_for_once_after_the_first_step_and_before_all_edges() -> None:
    plan = Plan(steps_per_pass=1, warm_up_passes=1, measured_passes=2, evaluates=True)
    events, asked = Events(), []
    bracket = Bracket(plan, events, lambda: events, events.measuring, events.clock)  # type: ignore[arg-type,return-value]
    control, state = TrainerControl(), TrainerState()
    bracket.on_train_begin(None, state, control)
    while not control.should_training_stop:
        events.step = state.global_step = state.global_step + 1
        control = bracket.on_step_end(None, state, control)
        asked.append(control.should_evaluate)

    assert asked == [True, False, False, False, False]
    assert plan.settled_step == 2


def test_the_loss_of_the_evaluation_is_kept() -> None:
    bracket = Bracket(Plan(1, 1, 1, evaluates=True), Events(), Events, Events)  # type: ignore[arg-type]
    before = bracket.evaluation_loss

    bracket.on_evaluate(None, TrainerState(), TrainerControl(), metrics={"eval_loss": 2.5})

    assert (before, bracket.evaluation_loss) == (None, 2.5)
