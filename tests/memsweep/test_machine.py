from __future__ import annotations

from pathlib import Path

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
