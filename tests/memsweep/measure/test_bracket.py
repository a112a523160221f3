from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from transformers import TrainerControl, TrainerState

from memsweep.measure.bracket import Bracket, NonFiniteLoss
from memsweep.measure.meter import Reading
from memsweep.measure.schedule import Block, Schedule
from memsweep.measure.steady import SteadyState
from memsweep.measure.tokens import TokenCount


class Events:
    """Stands in for memory, counter and clock, and writes down what is asked of it when."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.step = 0

    def __getattr__(self, name: str) -> Any:
        def event(*given: Any) -> None:
            if name != "check":
                self.log.append(" ".join([str(self.step), name, *map(str, given)]))

        return event

    def in_use_bytes(self) -> int:
        return 10 * self.step

    def now(self) -> Reading:
        return Reading(TokenCount(tokens=100 * self.step, slots=150 * self.step))

    @contextmanager
    def settling(self) -> Iterator[None]:
        self.log.append(f"{self.step} following")
        yield
        self.log.append(f"{self.step} followed")

    def clock(self) -> float:
        return 2.0 * self.step


def schedule_of(
    *, n_blocks: int = 2, max_passes: int = 2, evaluates: bool = False, longest: Sequence[int] = (0,)
) -> Schedule:
    """Return a schedule with a row a step."""
    return Schedule(
        block=Block(1), rows=range(n_blocks), longest=longest, max_passes=max_passes, evaluates=evaluates
    )


def bracket_of(
    schedule: Schedule,
    events: Events,
    steady: SteadyState | None = None,
    timed: Callable[[], None] = lambda: None,
) -> Bracket:
    """Return a bracket whose every helper is `events`."""
    steady = steady or SteadyState(0.03, 2, schedule.max_passes, 1000)
    return Bracket(
        schedule,
        steady,
        events,  # type: ignore[arg-type]
        lambda: events,  # type: ignore[arg-type,return-value]
        events.settling,
        events.measuring,
        timed,
        events.clock,
    )


def run(bracket: Bracket, events: Events) -> list[int]:
    """Go through the steps of a training as the trainer would, and return when losses were asked for."""
    control, state, logged = TrainerControl(), TrainerState(), []
    bracket.on_train_begin(None, state, control)
    while not control.should_training_stop:
        events.step = state.global_step = state.global_step + 1
        control = bracket.on_step_end(None, state, control)
        if control.should_evaluate:
            bracket.on_evaluate(None, state, control, metrics={"eval_loss": 2.5})
        if control.should_log:
            logged.append(events.step)
    return logged


def test_parts_of_memory_end_where_the_schedule_says_and_the_device_is_waited_for_at_edges_only() -> None:
    events = Events()

    run(bracket_of(schedule_of(), events), events)

    assert events.log == [
        "0 enter first_step",
        "1 enter worst_step",
        "2 enter steady",
        "3 wait",
        "3 settle",
        "3 following",
        "4 followed",
        "4 measuring",
        "4 wait",
        "6 wait",
        "8 wait",
    ]


def test_windows_follow_each_other_without_a_gap() -> None:
    events, steady = Events(), SteadyState(0.001, 3, 3, 1000)

    run(bracket_of(schedule_of(n_blocks=2, max_passes=3), events, steady), events)

    assert [window.seconds for window in steady.windows] == [4.0, 4.0, 4.0]
    assert sum(window.seconds for window in steady.windows) == 2.0 * (10 - 4)
    assert [window.done.counted for window in steady.windows] == [TokenCount(200, 300)] * 3


def test_training_stops_when_the_throughput_is_known() -> None:
    events, steady = Events(), SteadyState(0.03, 2, 50, 1000)
    bracket = bracket_of(schedule_of(max_passes=50), events, steady)

    run(bracket, events)

    assert (len(steady.windows), events.step, bracket.is_complete) == (2, 8, True)


def test_what_is_in_use_is_read_at_every_edge() -> None:
    events = Events()
    bracket = bracket_of(schedule_of(), events)

    run(bracket, events)

    assert bracket.in_use_bytes == [40, 60, 80]


def test_losses_are_asked_for_first_after_the_worst_and_at_edges() -> None:
    events = Events()

    logged = run(bracket_of(schedule_of(n_blocks=3), events), events)

    assert logged == [1, 2, 5, 8, 11]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_training(loss: float) -> None:
    bracket = bracket_of(schedule_of(), Events())

    with pytest.raises(NonFiniteLoss, match=f"loss {loss} in step 3"):
        bracket.on_log(None, TrainerState(global_step=3), TrainerControl(), {"loss": loss})


def test_evaluation_comes_once_after_the_first_block_as_a_part_of_its_own() -> None:
    events = Events()
    bracket = bracket_of(schedule_of(evaluates=True), events)

    run(bracket, events)

    assert events.log[:4] == [
        "0 enter first_step",
        "1 enter evaluation",
        "1 enter worst_step",
        "2 enter steady",
    ]
    assert bracket.evaluation_loss == 2.5


def test_without_a_worst_block_memory_is_steady_after_the_first() -> None:
    events = Events()

    run(bracket_of(schedule_of(longest=()), events), events)

    assert events.log[:3] == ["0 enter first_step", "1 enter steady", "2 wait"]


def test_what_is_called_after_a_window_may_end_the_training() -> None:
    class EnoughError(Exception):
        pass

    def timed() -> None:
        events.log.append(f"{events.step} timed")
        if len(steady.windows) == 2:
            raise EnoughError

    events, steady = Events(), SteadyState(0.001, 9, 9, 1000)
    bracket = bracket_of(schedule_of(max_passes=9), events, steady, timed)

    with pytest.raises(EnoughError):
        run(bracket, events)

    assert [line for line in events.log if "timed" in line] == ["6 timed", "8 timed"]
    assert not bracket.is_complete


def test_the_last_window_is_nothing_to_decide_after() -> None:
    events, asked = Events(), list[int]()
    steady = SteadyState(0.03, 2, 50, 1000)

    run(bracket_of(schedule_of(max_passes=50), events, steady, lambda: asked.append(events.step)), events)

    assert (events.step, asked) == (8, [6])
