from __future__ import annotations

import pytest

from memsweep.measure.schedule import Block, Schedule


def test_the_longest_come_second_and_again_before_time_counts() -> None:
    schedule = Schedule(block=Block(2), rows=range(4), longest=[8, 9], max_passes=2)

    assert schedule.order() == [0, 1, 8, 9, 2, 3, 8, 9, 0, 1, 2, 3, 0, 1, 2, 3]


def test_edges_are_a_pass_apart() -> None:
    schedule = Schedule(block=Block(2), rows=range(6), longest=[8, 9], max_passes=2)

    assert (schedule.first_block_end, schedule.worst_block_end, schedule.memory_end) == (1, 2, 4)
    assert [step for step in range(20) if schedule.is_edge(step)] == [5, 8, 11, 14, 17]
    assert schedule.last_edge == 11
    assert len(schedule.order()) == 11 * 2


def test_each_window_holds_each_row_once() -> None:
    schedule = Schedule(block=Block(2), rows=range(6), longest=[8, 9], max_passes=3)
    order = schedule.order()

    for number in range(3):
        first = (schedule.first_edge + number * schedule.steps_per_pass) * 2
        assert sorted(order[first : first + 6]) == [0, 1, 2, 3, 4, 5]


def test_rows_that_do_not_fill_the_last_block_are_filled_up() -> None:
    schedule = Schedule(block=Block(4), rows=range(6), longest=[6] * 4, max_passes=1)

    assert (schedule.rows_per_pass, schedule.steps_per_pass) == (8, 2)
    assert sorted(schedule.order()[-8:]) == [0, 0, 1, 1, 2, 3, 4, 5]


def test_fewer_rows_than_a_block_fill_it_by_themselves() -> None:
    schedule = Schedule(block=Block(4), rows=[0], longest=[0] * 4, max_passes=1)

    assert schedule.order() == [0] * 16
    assert (schedule.memory_end, schedule.first_edge, schedule.last_edge) == (2, 3, 4)


@pytest.mark.parametrize("n_rows", [1, 3, 4, 9])
def test_blocks_of_several_steps_keep_edges_at_their_ends(n_rows: int) -> None:
    schedule = Schedule(block=Block(2, n_steps=2), rows=range(n_rows), longest=[0, 0], max_passes=2)

    assert schedule.first_edge % 2 == 0
    assert schedule.last_edge == schedule.first_edge + 2 * schedule.steps_per_pass
    assert len(schedule.order()) == schedule.last_edge // 2 * 2


def test_without_a_worst_block_the_pass_goes_on_after_the_first() -> None:
    schedule = Schedule(block=Block(2), rows=range(4), longest=[], max_passes=1)

    assert schedule.order() == [0, 1, 2, 3, 0, 1, 0, 1, 2, 3]
    assert (schedule.worst_block_end, schedule.memory_end, schedule.first_edge) == (1, 2, 3)
    assert len(schedule.order()) == 2 * schedule.last_edge
