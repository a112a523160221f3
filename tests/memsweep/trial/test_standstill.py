from __future__ import annotations

from memsweep.trial.standstill import Standstill


class Machine:
    """Stands in for the clock and for the time that processes have computed."""

    def __init__(self, n_processes: int) -> None:
        self.now = 0.0
        self.used = [0.0] * n_processes

    def pass_by(self, seconds: float, *computing: int, share: float = 1.0) -> None:
        self.now += seconds
        for rank in computing:
            self.used[rank] += seconds * share

    def watch(self, patience_seconds: float = 10.0) -> Standstill:
        pids = range(len(self.used))
        return Standstill(pids, patience_seconds, lambda pid: self.used[pid], lambda: self.now)


def looks(
    machine: Machine, watch: Standstill, n_seconds: int, *computing: int, share: float = 1.0
) -> list[int]:
    found = []
    for _ in range(n_seconds):
        machine.pass_by(1.0, *computing, share=share)
        stands = watch.look()
        found += [] if stands is None else [stands]
    return found


def test_a_group_of_which_one_computes_goes_on_however_long() -> None:
    machine = Machine(2)

    assert looks(machine, machine.watch(), 100, 1) == []


def test_a_group_of_which_none_computes_stands_still_once_patience_ends() -> None:
    machine = Machine(2)
    watch = machine.watch()

    assert looks(machine, watch, 9) == []
    assert looks(machine, watch, 1) == [0]


def test_hardly_to_compute_is_to_stand_still() -> None:
    machine = Machine(2)

    assert looks(machine, machine.watch(), 10, 0, share=0.01) != []


def test_a_sign_of_life_is_enough() -> None:
    machine = Machine(2)
    watch = machine.watch()
    looks(machine, watch, 8)
    watch.goes_on(1)

    assert looks(machine, watch, 9) == []
    assert looks(machine, watch, 1) != []


def test_it_is_the_one_that_came_least_far() -> None:
    machine = Machine(3)
    watch = machine.watch()
    for rank in (0, 1, 2, 0, 1):
        watch.goes_on(rank)

    assert looks(machine, watch, 10) == [2]


def test_among_those_that_came_as_far_it_is_the_one_that_did_nothing_since() -> None:
    machine = Machine(2)
    watch = machine.watch()
    watch.goes_on(0)
    watch.goes_on(1)
    machine.pass_by(3.0, 0)
    watch.look()

    assert looks(machine, watch, 10) == [1]


class TestSomeComputeWhileOthersWait:
    def begun(self, step_seconds: float = 1.0) -> tuple[Machine, Standstill]:
        """Two processes that have each taken a step of so many seconds."""
        machine = Machine(2)
        watch = machine.watch()
        machine.pass_by(step_seconds, 0, 1)
        watch.look()
        for rank in (0, 1):
            watch.goes_on(rank, has_stepped=True)
        return machine, watch

    def test_it_is_the_one_that_computes_whom_the_others_wait_for(self) -> None:
        machine, watch = self.begun()

        assert looks(machine, watch, 9, 1) == []
        assert looks(machine, watch, 1, 1) == [1]

    def test_before_the_first_step_one_may_prepare_what_all_need(self) -> None:
        machine = Machine(2)
        watch = machine.watch()
        watch.goes_on(0)
        watch.goes_on(1)

        assert looks(machine, watch, 100, 1) == []

    def test_a_step_may_take_some_times_as_long_as_the_longest_did(self) -> None:
        machine, watch = self.begun(step_seconds=20.0)

        assert looks(machine, watch, 79, 1) == []
        assert looks(machine, watch, 1, 1) == [1]

    def test_who_ends_a_step_goes_on(self) -> None:
        machine, watch = self.begun()
        looks(machine, watch, 9, 1)
        watch.goes_on(1, has_stepped=True)

        assert looks(machine, watch, 9, 1) == []

    def test_all_that_compute_go_on_however_long(self) -> None:
        machine, watch = self.begun()

        assert looks(machine, watch, 100, 0, 1) == []

    def test_who_waits_now_and_then_goes_on(self) -> None:
        machine, watch = self.begun()

        for _ in range(10):
            assert looks(machine, watch, 5, 1) == []
            assert looks(machine, watch, 1, 0, 1) == []
