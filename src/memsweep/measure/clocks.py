"""Did a device run as fast as it can, and if not, what lowered its clocks?

A device that is hot, or at its power limit, computes more slowly than it did a minute ago.  The driver keeps
an account of the time that it lowered the clocks, and for what; the difference between two moments tells what
happened to the passes between them.

Written from NVML's reference, not run on hardware.

Source: NVML API reference guide, nvmlDeviceGetViolationStatus, nvmlClocksEventReasons; nvidia-ml-py==13.615.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memsweep.measure.driver import ask, handle_of, tried

# nvmlClocksEventReasons that make a device slower than it is, each with its cause.  Idleness, and clocks that
# a person has set, are left out: they do not come and go with the load.  HwSlowdown (0x08) comes with one of
# the last two.
_REASONS = {0x04: "power limit", 0x20: "heat", 0x40: "heat", 0x80: "power supply"}

THROTTLED_SHARE = 0.02
"""Of the time: above it lowered clocks are told of.  Ours: what two parts in a hundred can move at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """How a device runs at a moment.  None where the driver does not say.

    Attributes:
        sm_clock_mhz: Clock of the multiprocessors.
        memory_clock_mhz: Clock of the memory.
        temperature_celsius: Of the chip.
        reasons: Why the clocks are lowered just now, sorted: `heat`, `power limit`, `power supply`.
        power_seconds: How long the power limit has lowered the clocks since the driver was loaded.
        heat_seconds: How long heat has.
        at_seconds: The driver's clock, which the two are to be compared with.
    """

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_celsius: int | None = None
    reasons: tuple[str, ...] = ()
    power_seconds: float | None = None
    heat_seconds: float | None = None
    at_seconds: float | None = None

    def facts(self) -> dict[str, Any]:
        """Return what is known, JSON-ready."""
        names = ("sm_clock_mhz", "memory_clock_mhz", "temperature_celsius")
        known = {**{name: getattr(self, name) for name in names}, "lowered_by": list(self.reasons) or None}
        return {name: value for name, value in known.items() if value is not None}


def throttling(before: DeviceState | None, after: DeviceState | None) -> str | None:
    """Return the remark on clocks that were lowered between two moments, None when they were not.

    Where the driver keeps no account of the time, what it says at both moments decides.
    """
    if before is None or after is None:
        return None
    found = []
    seconds = _less(after.at_seconds, before.at_seconds)
    power_seconds = _less(after.power_seconds, before.power_seconds)
    heat_seconds = _less(after.heat_seconds, before.heat_seconds)
    for cause, lowered in (("the power limit", power_seconds), ("heat", heat_seconds)):
        if lowered is not None and seconds and lowered / seconds > THROTTLED_SHARE:
            found.append(f"{cause} for {min(1.0, lowered / seconds):.0%} of the time")
    if not found and (after.power_seconds is None or after.heat_seconds is None):
        found = [f"{reason} at its begin and end" for reason in after.reasons if reason in before.reasons]
    return f"the GPU's clocks were lowered during the measurement: {', '.join(found)}" if found else None


def device_state(uuid: str | None = None) -> DeviceState | None:
    """Return how a device runs now, None without a driver.

    Ask while the device computes: clocks fall as soon as it waits.
    """

    def question(nvml: Any) -> DeviceState:
        handle = handle_of(nvml, uuid)
        power = tried(nvml.nvmlDeviceGetViolationStatus, handle, nvml.NVML_PERF_POLICY_POWER)
        heat = tried(nvml.nvmlDeviceGetViolationStatus, handle, nvml.NVML_PERF_POLICY_THERMAL)
        clock = power or heat
        # The older name for drivers that do not know the newer.
        reasons = tried(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if reasons is None:
            reasons = tried(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
        return DeviceState(
            sm_clock_mhz=tried(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=tried(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            temperature_celsius=tried(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            reasons=tuple(sorted({cause for bit, cause in _REASONS.items() if reasons & bit})),
            # nvmlViolationTime_t: violationTime in nanoseconds, referenceTime in microseconds.
            power_seconds=None if power is None else power.violationTime * 1e-9,
            heat_seconds=None if heat is None else heat.violationTime * 1e-9,
            at_seconds=None if clock is None else clock.referenceTime * 1e-6,
        )

    return ask(question)


def _less(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else max(0.0, now - before)
