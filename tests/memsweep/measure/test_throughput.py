from __future__ import annotations

import pytest

from memsweep.measure.generation import Generated
from memsweep.measure.meter import Reading
from memsweep.measure.prepared import Prepared
from memsweep.measure.schedule import Block, Schedule
from memsweep.measure.steady import SteadyState, Window
from memsweep.measure.throughput import throughput
from memsweep.measure.tokens import TokenCount


def steady_of(*windows: Window) -> SteadyState:
    """Return a state that has taken these windows."""
    steady = SteadyState(precision=0.1, min_windows=2, max_windows=len(windows), max_seconds=1000)
    for window in windows:
        steady.add(window)
    return steady


def passes(
    *seconds: float, tokens: int = 600, slots: int = 900, generated: Generated | None = None
) -> SteadyState:
    """Return a state of passes that took so long."""
    reading = Reading(TokenCount(tokens, slots), generated or Generated())
    return steady_of(*(Window(time, reading) for time in seconds))


SCHEDULE = Schedule(block=Block(4), rows=range(8), longest=[0] * 4, max_passes=2)
PREPARED = Prepared(tokens=600, label_tokens=150)


def test_rates_are_per_second_of_the_windows_that_count() -> None:
    found = throughput(passes(2.0, 2.0), SCHEDULE, 8, PREPARED, is_packed=False).measures

    assert found["tokens_per_second"] == 300
    assert found["slots_per_second"] == 450
    assert found["supervised_tokens_per_second"] == 75
    assert found["samples_per_second"] == 4
    assert found["steps_per_second"] == 1
    assert found["padding_share"] == pytest.approx(1 / 3)
    assert (found["trained_tokens"], found["measured_seconds"], found["n_measured_steps"]) == (600, 4, 4)


def test_warm_up_does_not_count() -> None:
    found = throughput(passes(9.0, 2.0, 2.0), SCHEDULE, 8, PREPARED, is_packed=False).measures

    assert (found["tokens_per_second"], found["n_warm_up_passes"], found["n_measured_passes"]) == (300, 1, 2)


def test_an_example_that_preparation_dropped_is_one_that_a_pass_is_done_with() -> None:
    """Sixteen examples became eight rows: a pass over the data set is over after two steps."""
    found = throughput(passes(2.0, 2.0), SCHEDULE, 16, PREPARED, is_packed=False).measures

    assert found["samples_per_second"] == 8


def test_rows_that_fill_up_a_batch_are_samples_too() -> None:
    schedule = Schedule(block=Block(4), rows=range(6), longest=[0] * 4, max_passes=2)

    found = throughput(passes(2.0, 2.0), schedule, 6, PREPARED, is_packed=False).measures

    assert found["samples_per_second"] == 4  # eight rows in two seconds


def test_a_packed_row_is_as_many_samples_as_it_has_tokens_of_theirs() -> None:
    """Ten examples with 600 tokens in two rows; the pass trains on each row twice."""
    schedule = Schedule(block=Block(4), rows=range(2), longest=[0] * 4, max_passes=2)

    found = throughput(passes(2.0, 2.0, tokens=1200), schedule, 10, PREPARED, is_packed=True).measures

    assert found["samples_per_second"] == 10


def test_rates_have_intervals_and_a_share_has_none() -> None:
    found = throughput(passes(2.0, 2.2, 2.0), SCHEDULE, 8, PREPARED, is_packed=False)

    low, high = found.intervals["tokens_per_second"]
    assert low < found.measures["tokens_per_second"] < high
    assert set(found.intervals) == {
        f"{name}_per_second" for name in ("tokens", "slots", "samples", "steps", "supervised_tokens")
    }


def test_where_the_loss_is_not_about_tokens_there_is_no_such_rate() -> None:
    found = throughput(passes(2.0, 2.0), SCHEDULE, 8, Prepared(600), is_packed=False)

    assert "supervised_tokens_per_second" not in found.measures


def test_the_time_of_an_online_trainer_is_split() -> None:
    steady = passes(2.0, 2.0, generated=Generated(tokens=100, seconds=0.5))

    found = throughput(steady, SCHEDULE, 8, Prepared(600), is_packed=False).measures

    assert found["generated_tokens_per_second"] == 50
    assert found["generation_tokens_per_second"] == 200
    assert found["generation_share"] == 0.25
