"""What a template does while it imports; what it does afterwards is seen in test_isolate."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from memsweep import machine
from memsweep.trial import kernel, template


def fake_torch(cuda_version: str | None) -> Any:
    def refuse(_: object = None) -> None:
        raise AssertionError("this makes a CUDA context")

    cuda = types.SimpleNamespace(get_device_capability=refuse, is_initialized=lambda: False)
    return types.SimpleNamespace(cuda=cuda, version=types.SimpleNamespace(cuda=cuda_version))


def test_while_importing_the_capability_comes_from_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "compute_capability", lambda: 9.0)
    torch = fake_torch("12.8")
    before = torch.cuda.get_device_capability

    with template._capability_from_driver(torch):
        assert torch.cuda.get_device_capability(0) == (9, 0)
    assert torch.cuda.get_device_capability is before


@pytest.mark.parametrize(("version", "capability"), [(None, 9.0), ("12.8", None)])
def test_without_cuda_torch_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, version: str | None, capability: float | None
) -> None:
    monkeypatch.setattr(machine, "compute_capability", lambda: capability)
    torch = fake_torch(version)
    before = torch.cuda.get_device_capability

    with template._capability_from_driver(torch):
        assert torch.cuda.get_device_capability is before


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with one thread, no torch and no device."""
    monkeypatch.setattr(kernel, "thread_names", lambda: ["python"])
    monkeypatch.setattr(kernel, "open_devices", lambda _: [])
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.mark.usefixtures("alone")
class TestReasonsAgainstForking:
    def test_there_are_none_by_default(self) -> None:
        assert template._reasons_against_forking() == []

    def test_a_second_thread_is_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kernel, "thread_names", lambda: ["python", "jemalloc_bg_thd"])

        assert template._reasons_against_forking() == [
            "imports have started 1 thread(s): jemalloc_bg_thd, python"
        ]

    def test_initialized_cuda_is_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        torch = fake_torch("12.8")
        torch.cuda.is_initialized = lambda: True
        monkeypatch.setitem(sys.modules, "torch", torch)

        assert template._reasons_against_forking() == ["imports have initialized CUDA"]

    def test_an_initialized_driver_is_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kernel, "open_devices", lambda prefix: [prefix])

        (reason,) = template._reasons_against_forking()

        assert "initialized the CUDA driver" in reason
