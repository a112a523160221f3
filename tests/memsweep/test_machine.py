from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from memsweep import machine
from memsweep.machine import Device


def with_torch(monkeypatch: pytest.MonkeyPatch, version: str | None, *capabilities: float) -> None:
    found = {} if version is None else {"torch": version}
    monkeypatch.setattr(machine, "package_versions", lambda _: found)
    monkeypatch.setattr(machine, "_capabilities", lambda: list(capabilities))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_device_that_is_asked_for_is_taken_at_its_word() -> None:
    assert machine.device(Device.CUDA) == (Device.CUDA, "launch.device=cuda")


def test_without_a_driver_or_a_cuda_build_it_is_the_cpu_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torch(monkeypatch, "2.13.0+cpu", 9.0)
    assert machine.device() == (Device.CPU, "torch 2.13.0+cpu is built without CUDA")
    with_torch(monkeypatch, "2.13.0")
    assert machine.device() == (Device.CPU, "the NVIDIA driver shows no device")
    with_torch(monkeypatch, None, 9.0)
    assert machine.device() == (Device.CPU, "torch is not installed")


def test_a_device_of_the_driver_is_taken_unless_it_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torch(monkeypatch, "2.13.0+cu130", 9.0)
    assert machine.device() == (Device.CUDA, "the NVIDIA driver shows 1 device(s)")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.device()[0] is Device.CPU


@pytest.mark.parametrize(
    ("visible", "n_devices"), [(None, 3), ("", 0), ("-1", 0), ("0,1", 2), ("2,-1,0", 1), ("0,1,2,3,4", 3)]
)
def test_devices_are_those_of_the_driver_that_are_not_hidden(
    visible: str | None, n_devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_capabilities", lambda: [8.0, 9.0, 9.0])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert machine.n_devices() == n_devices


def test_the_least_capable_device_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torch(monkeypatch, "2.13.0", 9.0, 7.5)
    assert machine.compute_capability() == 7.5
    with_torch(monkeypatch, "2.13.0")
    assert machine.compute_capability() is None


def test_packages_that_are_not_installed_are_left_out() -> None:
    found = machine.package_versions(["packaging", "no-such-package-anywhere"])

    assert list(found) == ["packaging"]


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000\n", None), ("150000 100000\n", 1.5), ("", None), ("a b", None)]
)
def test_a_control_group_limits_the_cores(tmp_path: Path, text: str, cores: float | None) -> None:
    (tmp_path / "cpu.max").write_text(text)

    assert machine._quota(tmp_path / "cpu.max") == cores
    assert machine._quota(tmp_path / "absent") is None
    assert machine.n_cores() >= 1


def test_native_bfloat16_is_told_with_its_reason() -> None:
    native, reason = machine.has_native_bf16()

    assert isinstance(native, bool)
    assert "bf16" in reason or "cpuinfo" in reason


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake /proc of a machine with four cores of which two may be used."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(machine, "_quota", lambda _: None)
    core = "processor : 0\nmodel name\t: Examplar 9000\ncpu MHz\t\t: {}\n"
    (tmp_path / "cpuinfo").write_text(core.format(2000.4) + core.format(3000.4))
    (tmp_path / "meminfo").write_text("MemTotal:       16300000 kB\nMemFree:         1 kB\n")
    return tmp_path


def test_a_machine_is_named_by_what_figures_depend_on(kernel: Path) -> None:
    assert machine.machine_name(proc=kernel) == "Examplar 9000, 2 cores, 16 GiB"


def test_devices_that_are_computed_on_are_part_of_the_name(kernel: Path) -> None:
    device = {"name": "NVIDIA H200", "memory_bytes": 140 * 2**30, "power_limit_watts": 700.0}

    assert machine.machine_name([device], kernel) == ("Examplar 9000, 2 cores, 16 GiB; NVIDIA H200, 140 GiB")
    assert machine.machine_name([device, device, {"name": "T4"}], kernel) == (
        "Examplar 9000, 2 cores, 16 GiB; 2 x NVIDIA H200, 140 GiB; T4"
    )


def test_facts_of_a_machine_hold_what_its_kernel_says(kernel: Path) -> None:
    found = machine.machine_facts([{"name": "T4"}], kernel, kernel / "absent")

    assert found.pop("kernel")
    assert found == {
        "processor": "Examplar 9000",
        "cores": [1, 3],
        "n_cores_usable": 2,
        "n_cores_total": 4,
        "clock_mhz": 2500,
        "memory_bytes": 16300000 * 1024,
        "devices": [{"name": "T4"}],
    }


def test_clock_and_governor_are_those_of_the_usable_cores(kernel: Path) -> None:
    for core, (khz, governor) in enumerate(
        [(1000000, "powersave"), (2400000, "performance"), (1000000, "powersave"), (2600000, "performance")]
    ):
        folder = kernel / "cpu" / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{khz}\n")
        (folder / "scaling_governor").write_text(f"{governor}\n")
    found = machine.machine_facts(proc=kernel, cores=kernel / "cpu")

    assert (found["clock_mhz"], found["governor"]) == (2500, "performance")


def test_a_system_that_says_nothing_has_a_name_nevertheless(tmp_path: Path) -> None:
    assert "cores" in machine.machine_name(proc=tmp_path)
    assert "memory_bytes" not in machine.machine_facts(proc=tmp_path, cores=tmp_path)


def test_compute_capabilities_are_asked_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    fake = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: closed.append(True),
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetCudaComputeCapability=lambda handle: [(9, 0), (8, 6)][handle],
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)

    assert machine.compute_capability() == 8.6
    assert closed == [True]


def test_without_the_drivers_library_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it raises

    assert machine.compute_capability() is None
