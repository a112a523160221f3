from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memsweep.measure import driver
from memsweep.measure.driver import device_facts, device_use, process_tree_bytes
from memsweep.units import GIB

FIRST, SECOND = "GPU-11111111-aaaa", "GPU-22222222-bbbb"
"""The devices of `nvml`, of conftest.py."""


def holds(pid: int, used_bytes: int | None) -> Any:
    return SimpleNamespace(pid=pid, usedGpuMemory=used_bytes)


def test_without_a_driver_nothing_is_known_and_nothing_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it raises

    assert (device_use(), process_tree_bytes(), device_facts()) == (None, None, [])


def test_what_this_process_and_its_children_hold_is_ours_and_the_rest_is_others(
    nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "process_tree", lambda root: frozenset({root, 51}))
    nvml.processes = [holds(os.getpid(), 4 * GIB), holds(51, 2 * GIB), holds(4711, 3 * GIB), holds(9, None)]
    found = device_use(FIRST)

    assert found is not None
    assert (found.total_bytes, found.free_bytes, found.own_bytes) == (80 * GIB, 10 * GIB, 6 * GIB)
    assert process_tree_bytes(FIRST) == 6 * GIB
    assert found.others_bytes == 3 * GIB
    assert found.remark == (
        "the GPU was shared: process 4711 holds 3.0 GiB, process 9 computes on it; "
        "neither its speed nor its memory were all ours"
    )


def test_a_device_that_is_ours_alone_needs_no_remark(nvml: Any) -> None:
    nvml.processes = [holds(os.getpid(), 4 * GIB)]
    found = device_use()

    assert found is not None
    assert (found.own_bytes, found.others, found.remark) == (4 * GIB, (), None)


@pytest.mark.parametrize(("is_machine", "n_others"), [(True, 1), (False, 0)])
def test_in_a_container_a_strange_number_may_be_our_own(
    nvml: Any, monkeypatch: pytest.MonkeyPatch, is_machine: bool, n_others: int
) -> None:
    monkeypatch.setattr(driver, "_numbers_are_the_machines", lambda: is_machine)
    nvml.processes = [holds(2**22 - 1, 4 * GIB)]
    found = device_use()

    assert found is not None
    assert found.own_bytes is None
    assert len(found.others) == n_others


def test_a_device_is_found_by_its_uuid_and_else_by_what_is_visible(
    nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free_gib(uuid: str | None = None) -> float:
        found = device_use(uuid)
        assert found is not None
        return found.free_bytes / GIB

    assert free_gib() == 10
    assert free_gib(SECOND.removeprefix("GPU-")) == 11
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert free_gib() == 11
    assert free_gib(FIRST) == 10
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2222")
    assert [facts["uuid"] for facts in device_facts()] == [SECOND]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device_facts() == []
    assert device_use() is None


def test_facts_hold_what_the_driver_answers_and_leave_out_the_rest(nvml: Any) -> None:
    assert device_facts()[0] == {
        "name": "Device 0",
        "uuid": FIRST,
        "memory_bytes": 80 * GIB,
        "driver_version": "580.65",
        "power_limit_watts": 700.0,
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
    }
    assert "power_limit_watts" not in device_facts()[1]
    assert nvml.n_open == 0


def test_a_process_tree_has_all_descendants_and_nobody_else(tmp_path: Path) -> None:
    for pid, parent in {1: 0, 10: 1, 11: 10, 12: 11, 20: 1}.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} 1 1 0 -1 4194304\n")
    (tmp_path / "30").mkdir()  # it ended: its folder is empty
    (tmp_path / "self").mkdir()

    assert driver.process_tree(10, tmp_path) == {10, 11, 12}
    assert driver.process_tree(99, tmp_path) == {99}


def test_this_processs_own_tree_is_read_from_the_system() -> None:
    tree = driver.process_tree(os.getppid())

    assert os.getpid() in tree
