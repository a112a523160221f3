from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsweep.measure.contention import WAITED_SHARE, Busyness, Contention

NANOSECONDS = 1_000_000_000


class Machine:
    """A fake /proc, and a clock that stands still."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.now = folder, 100.0
        (folder / "pressure").mkdir()
        (folder / "loadavg").write_text("1.50 0.40 0.30 2/90 1234\n")
        self.threads(main=0)
        self.steal(0, 0)
        self.stalled(0.0)

    def threads(self, **waited_seconds: float) -> None:
        tasks = self.proc / "self" / "task"
        for folder in tasks.glob("*"):
            (folder / "schedstat").unlink()
            folder.rmdir()
        for name, seconds in waited_seconds.items():
            (tasks / name).mkdir(parents=True)
            (tasks / name / "schedstat").write_text(f"777 {round(seconds * NANOSECONDS)} 9\n")

    def steal(self, *ticks: int) -> None:
        lines = [f"cpu{core} 10 0 20 3000 5 0 6 {n} 0 0" for core, n in enumerate(ticks)]
        (self.proc / "stat").write_text("\n".join([f"cpu  1 1 1 1 1 1 1 {sum(ticks)} 0 0", *lines]) + "\n")

    def stalled(self, seconds: float) -> None:
        text = (
            f"some avg10=0.00 avg60=0.00 avg300=0.00 total={round(seconds * 1e6)}\nfull avg10=0.00 total=9\n"
        )
        (self.proc / "pressure" / "cpu").write_text(text)

    def begin(self, n_threads: int = 2, n_processes: int = 1) -> Contention:
        return Contention.begin(n_threads, frozenset({0, 1}), self.proc, lambda: self.now, n_processes)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_waiting_is_told_as_a_share_of_the_time_of_all_threads(machine: Machine) -> None:
    machine.threads(a=1.0, b=5.0)
    contention = machine.begin(n_threads=2)
    machine.threads(a=2.0, b=8.0)
    machine.now += 10
    found = contention.end()

    assert found.seconds == 10
    assert found.waited_share == pytest.approx((1 + 3) / (10 * 2))
    assert found.remark == (
        "the machine was busy with something else: threads waited for a core 20% of the time; "
        "the throughput is too low"
    )


def test_threads_may_come_and_go(machine: Machine) -> None:
    machine.threads(stays=1.0, ends=5.0, renumbered=9.0)
    contention = machine.begin()
    machine.threads(stays=1.5, begins=0.25, renumbered=0.125)
    machine.now += 10

    assert contention.end().waited_share == pytest.approx((0.5 + 0.25 + 0.125) / 20)


def test_a_thread_that_ends_while_it_is_read_is_left_out(machine: Machine) -> None:
    contention = machine.begin()
    (machine.proc / "self" / "task" / "gone").mkdir()
    machine.now += 10

    assert contention.end().waited_share == 0


def test_processes_of_one_trial_wait_for_each_other_and_for_nobody_else(machine: Machine) -> None:
    begun = machine.begin(1), machine.begin(1, n_processes=2)
    machine.now += 10
    machine.threads(main=5)
    alone, one_of_two = (one.end() for one in begun)

    assert "threads waited for a core 50%" in (alone.remark or "")
    assert one_of_two.waited_share == alone.waited_share
    assert one_of_two.remark is None


def test_more_threads_than_cores_wait_for_each_other_and_for_nobody_else(machine: Machine) -> None:
    contention = machine.begin(n_threads=4)
    machine.threads(main=10.0)
    machine.now += 10
    found = contention.end()

    assert found.waited_share == pytest.approx(0.25)
    assert found.remark is None


def test_steal_is_told_of_the_usable_cores_only(machine: Machine) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    machine.steal(0, 0, 0, 0)
    contention = Contention.begin(2, frozenset({1, 2}), machine.proc, lambda: machine.now)
    machine.steal(9999, 2 * ticks, 1 * ticks, 9999)
    machine.now += 10
    found = contention.end()

    assert found.stolen_share == pytest.approx(3 / (10 * 2))
    assert found.remark is not None
    assert "the host withheld the cores 15% of the time" in found.remark


def test_load_and_pressure_are_recorded_and_judge_nothing(machine: Machine) -> None:
    contention = machine.begin()
    machine.stalled(4.0)
    machine.now += 8
    found = contention.end()

    assert found.facts() == {
        "seconds": 8.0,
        "waited_share": 0.0,
        "stolen_share": 0.0,
        "load_average": 1.5,
        "pressure_share": 0.5,
    }
    assert found.remark is None


def test_a_system_without_these_accounts_says_nothing(tmp_path: Path) -> None:
    found = Contention.begin(2, frozenset({0}), tmp_path / "absent").end()

    assert (found.waited_share, found.stolen_share, found.load_average) == (None, None, None)
    assert list(found.facts()) == ["seconds"]
    assert found.remark is None


def test_a_little_waiting_is_no_remark() -> None:
    def with_waited(share: float) -> Busyness:
        return Busyness(seconds=1, waited_share=share, stolen_share=0, load_average=None, pressure_share=None)

    assert with_waited(WAITED_SHARE).remark is None
    assert with_waited(WAITED_SHARE + 0.001).remark is not None


@pytest.fixture
def core() -> Iterator[int]:
    """One core, which this process and those that it starts share."""
    if not hasattr(os, "sched_setaffinity") or not Path("/proc/self/schedstat").exists():
        pytest.skip("needs Linux's account of waiting threads")
    usable = os.sched_getaffinity(0)
    chosen = max(usable)
    os.sched_setaffinity(0, {chosen})
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, usable)


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_processes_that_compete_for_our_core_are_remarked_on(core: int) -> None:
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        time.sleep(0.2)  # until they run; they inherit the core
        contention = Contention.begin(1)
        spin(0.8)
        found = contention.end()
    finally:
        for other in others:
            other.kill()
            other.wait()

    assert found.waited_share is not None
    assert 0.4 < found.waited_share < 1
    assert found.remark is not None
