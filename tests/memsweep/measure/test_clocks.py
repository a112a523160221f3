from __future__ import annotations

import sys
from typing import Any

import pytest

from memsweep.measure.clocks import DeviceState, device_state, throttling


def test_without_a_driver_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it raises

    assert device_state() is None


@pytest.mark.parametrize("has_event_reasons", [True, False])
def test_the_state_tells_clocks_heat_and_what_lowers_them(nvml: Any, has_event_reasons: bool) -> None:
    nvml.has_event_reasons = has_event_reasons
    nvml.reasons = 0x01 | 0x04 | 0x08 | 0x40  # idle and the general slowdown are no causes
    found = device_state()

    assert found is not None
    assert found.facts() == {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
        "temperature_celsius": 64,
        "lowered_by": ["heat", "power limit"],
    }
    assert nvml.n_open == 0


def test_lowered_clocks_are_told_by_their_share_of_the_time(nvml: Any) -> None:
    before = device_state()
    nvml.at_us = 10 * 10**6
    nvml.lowered_ns = {0: 4 * 10**9, 1: 10**8}
    after = device_state()

    assert throttling(before, after) == (
        "the GPU's clocks were lowered during the measurement: the power limit for 40% of the time"
    )
    assert throttling(after, after) is None


def test_without_an_account_of_time_what_held_at_both_ends_is_told(nvml: Any) -> None:
    nvml.lowered_ns = None
    nvml.reasons = 0x20
    hot = device_state()
    nvml.reasons = 0
    cool = device_state()

    assert throttling(hot, hot) == (
        "the GPU's clocks were lowered during the measurement: heat at its begin and end"
    )
    assert throttling(hot, cool) is None
    assert throttling(None, hot) is None


def test_facts_of_an_unknown_state_are_empty() -> None:
    assert DeviceState().facts() == {}
