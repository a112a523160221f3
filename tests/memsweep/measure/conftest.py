# ruff: noqa: N802 - the names of pynvml
from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from memsweep.units import GIB

FIRST, SECOND = "GPU-11111111-aaaa", "GPU-22222222-bbbb"


class NotSupported(Exception):
    pass


class FakeNvml:
    """The functions of pynvml that are asked, over two devices."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1

    def __init__(self) -> None:
        self.uuids = [FIRST, SECOND]
        self.processes: list[Any] = []
        self.reasons = 0
        self.lowered_ns: dict[int, int] | None = {0: 0, 1: 0}
        self.at_us = 0
        self.n_open = 0
        self.has_event_reasons = True

    def nvmlInit(self) -> None:
        self.n_open += 1

    def nvmlShutdown(self) -> None:
        self.n_open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return self.uuids[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return next(known for known in self.uuids if known.startswith(uuid))

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetName(self, handle: str) -> str:
        return f"Device {self.uuids.index(handle)}"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(total=80 * GIB, free=(10 + self.uuids.index(handle)) * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return self.processes

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        if handle == SECOND:
            raise NotSupported
        return 700_000

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1980, 2: 2619}[kind]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 64

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        if not self.has_event_reasons:
            raise NotSupported
        return self.reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return self.reasons

    def nvmlDeviceGetViolationStatus(self, handle: str, policy: int) -> Any:
        if self.lowered_ns is None:
            raise NotSupported
        return SimpleNamespace(referenceTime=self.at_us, violationTime=self.lowered_ns[policy])


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake
