"""Who has which part of the machine, and who waits for one."""

from __future__ import annotations

import threading

import pytest

from memsweep.trial.holding import Leases
from memsweep.trial.lease import Lease


def pool(n_slots: int, *, n_cores: int = 1, n_devices: int = 0, **facts: object) -> Leases:
    shared = [
        Lease(
            n_slots=n_slots,
            cores=tuple(range(slot * n_cores, (slot + 1) * n_cores)),
            devices=tuple(str(slot * n_devices + place) for place in range(n_devices)),
        )
        for slot in range(n_slots)
    ]
    return Leases(shared, **facts)  # type: ignore[arg-type]


def started(
    leases: Leases, got: threading.Event, let_go: threading.Event, n_processes: int = 1
) -> threading.Thread:
    """Begin a trial of so many processes: it waits for its part, and has it until it is to let go."""

    def live() -> None:
        with leases.taken(n_processes):
            got.set()
            let_go.wait(10)

    thread = threading.Thread(target=live)
    thread.start()
    return thread


def test_nobody_has_what_another_has() -> None:
    leases = pool(2)
    with leases.taken() as one, leases.taken() as other:
        assert {one.lease, other.lease} == set(leases.shared)


def test_one_that_comes_back_is_had_by_who_waits() -> None:
    leases, got, let_go = pool(1), threading.Event(), threading.Event()
    with leases.taken():
        trial = started(leases, got, let_go)
        assert not got.wait(0.1)
    assert got.wait(5)
    let_go.set()
    trial.join()


def test_it_is_not_had_before_the_last_process_of_its_trial_is_gone() -> None:
    there = {4711}
    leases, got, let_go = pool(1, is_there=there.__contains__), threading.Event(), threading.Event()
    with leases.taken() as holding:
        holding.survivors = (4711,)

    trial = started(leases, got, let_go)
    assert not got.wait(0.3)
    there.clear()
    assert got.wait(5)
    let_go.set()
    trial.join()


def test_another_is_had_meanwhile() -> None:
    leases = pool(2, is_there=lambda _: True)
    with leases.taken() as first:
        first.survivors = (4711,)
    with leases.taken() as second:
        assert second.lease != first.lease


def test_who_waits_hears_of_an_interrupt() -> None:
    leases, raised = pool(1), threading.Event()

    def wait() -> None:
        try:
            with leases.taken():
                pass
        except KeyboardInterrupt:
            raised.set()

    with leases.taken():
        thread = threading.Thread(target=wait)
        thread.start()
        leases.interrupt()
        assert raised.wait(5)
    thread.join()


@pytest.mark.parametrize(
    ("n_slots", "n_cores", "n_devices", "n_processes", "expected"),
    [
        (2, 1, 0, 1, 1),
        (2, 1, 0, 2, 2),
        (2, 4, 0, 2, 1),  # cores enough in one slot
        (4, 1, 1, 3, 3),
        (4, 8, 1, 2, 2),  # devices count, not cores
        (2, 8, 2, 2, 1),
        (2, 1, 0, 5, 2),  # all there is
    ],
)
def test_a_trial_takes_as_many_slots_as_give_each_process_its_own(
    n_slots: int, n_cores: int, n_devices: int, n_processes: int, expected: int
) -> None:
    assert pool(n_slots, n_cores=n_cores, n_devices=n_devices).n_needed(n_processes) == expected


def test_the_parts_of_several_slots_are_one_lease_that_compares_with_one_of_them() -> None:
    leases = pool(2, n_cores=2, n_devices=1)
    with leases.taken(2) as both:
        assert both.lease is not None
        assert (both.lease.cores, both.lease.devices) == ((0, 1, 2, 3), ("0", "1"))
        assert both.lease.environment == {"CUDA_VISIBLE_DEVICES": "0,1"}
        assert both.lease.condition == leases.shared[0].condition
        assert both.lease.facts()["n_taken"] == 2


def test_two_that_need_more_than_there_is_have_it_one_after_the_other() -> None:
    leases, got, let_go = pool(2), threading.Event(), threading.Event()
    with leases.taken(2):
        trial = started(leases, got, let_go, 2)
        assert not got.wait(0.1)
    assert got.wait(5)
    let_go.set()
    trial.join()


def test_small_ones_do_not_keep_a_large_one_waiting_for_ever() -> None:
    leases = pool(2)
    large, small, let_go = threading.Event(), threading.Event(), threading.Event()
    with leases.taken():
        trials = [started(leases, large, let_go, 2)]
        assert not large.wait(0.2)  # it stands in the queue by now
        trials += [started(leases, small, let_go)]
        assert not small.wait(0.2)  # though a slot is free
    assert large.wait(5)
    let_go.set()
    assert small.wait(5)
    for trial in trials:
        trial.join()
