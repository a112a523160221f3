from __future__ import annotations

import pytest
import torch

from memsweep.measure.driver import DeviceProcess, DeviceUse
from memsweep.record.outcome import Crashed, OutOfMemory, Phase
from memsweep.trial.failure import outcome_of
from memsweep.units import GIB, MIB


def accelerator_error(text: str, code: int | None) -> torch.AcceleratorError:
    error = torch.AcceleratorError(text)
    if code is not None:
        vars(error)["error_code"] = code  # as PyTorch sets it when CUDA raises
    return error


def crash_of(error: Exception) -> Crashed:
    outcome = outcome_of(error, Phase.BUILD, None)
    assert isinstance(outcome, Crashed)
    return outcome


def test_an_ordinary_failure_is_not_expected_to_pass() -> None:
    outcome = crash_of(ValueError("wrong shape\nand more"))

    assert outcome.reason == "ValueError: wrong shape"
    assert not outcome.may_pass


def test_a_busy_device_may_be_free_the_next_time() -> None:
    outcome = crash_of(accelerator_error("CUDA error: in whatever words", 46))

    assert outcome.may_pass
    assert outcome.reason == (
        "the device is busy or unavailable (AcceleratorError: CUDA error: in whatever words)"
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable"),
        RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA kernel errors..."),
        RuntimeError(
            "Unexpected error from cudaGetDeviceCount(). Did you ...? Error 802: system not yet ..."
        ),
        accelerator_error("CUDA error", 802),
    ],
)
def test_what_the_device_is_not_ready_for_may_pass(error: Exception) -> None:
    assert crash_of(error).may_pass


@pytest.mark.parametrize(
    "error",
    [
        accelerator_error("CUDA error: an illegal memory access was encountered", 700),
        accelerator_error("CUDA error: device-side assert; this text is not busy or unavailable", 710),
        RuntimeError("the queue is busy or unavailable"),
        RuntimeError("tensors on cuda:0 (46)"),
        RuntimeError("Error 802: of something else"),
        ValueError("CUDA devices are busy or unavailable"),
    ],
)
def test_other_failures_will_not_pass(error: Exception) -> None:
    assert not crash_of(error).may_pass


def test_a_busy_device_behind_another_error_is_found() -> None:
    try:
        try:
            raise accelerator_error("CUDA error", 46)
        except RuntimeError as cause:
            raise ValueError("the trainer could not be built") from cause
    except ValueError as error:
        outcome = crash_of(error)

    assert outcome.may_pass
    assert "the trainer could not be built" in outcome.reason


def test_memory_that_cuda_itself_lacks_is_out_of_memory() -> None:
    outcome = outcome_of(accelerator_error("CUDA error: out of memory", 2), Phase.BUILD, 5)

    assert isinstance(outcome, OutOfMemory)
    assert (outcome.where, outcome.held_bytes) == ("device", 5)


def failed_request(text: str = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has") -> Exception:
    return torch.OutOfMemoryError(text)


def use(free_bytes: int, *others: DeviceProcess) -> DeviceUse:
    return DeviceUse(total_bytes=80 * GIB, free_bytes=free_bytes, own_bytes=None, others=others)


OTHER = DeviceProcess(4711, 30 * GIB)


@pytest.mark.parametrize("error", [failed_request(), failed_request("CUDA out of memory.")])
def test_out_of_memory_on_a_shared_device_is_not_the_set_ups_truth(error: Exception) -> None:
    outcome = outcome_of(error, Phase.WARM_UP, 40 * GIB, lambda: use(1 * GIB, OTHER))

    assert isinstance(outcome, Crashed)
    assert outcome.may_pass
    assert outcome.reason == "device out of memory while it was shared: process 4711 holds 30.0 GiB"


@pytest.mark.parametrize(
    "found",
    [
        None,
        use(1 * GIB),
        use(1 * GIB, DeviceProcess(4711, None)),
        use(1 * GIB, DeviceProcess(4711, 500 * MIB)),  # would not fit without the other either
        use(3 * GIB, OTHER),  # there is room: the trial's own budget refused
    ],
)
def test_out_of_memory_that_others_did_not_cause_is_the_set_ups_truth(found: DeviceUse | None) -> None:
    outcome = outcome_of(failed_request(), Phase.WARM_UP, 40 * GIB, lambda: found)

    assert isinstance(outcome, OutOfMemory)
    assert outcome.requested_bytes == 2 * GIB


def test_small_requests_take_a_whole_segment() -> None:
    small = failed_request("CUDA out of memory. Tried to allocate 2.00 MiB.")
    outcome = outcome_of(small, Phase.WARM_UP, None, lambda: use(10 * MIB, OTHER))

    assert isinstance(outcome, Crashed)


def test_who_holds_the_device_is_asked_only_when_its_memory_ran_out() -> None:
    def never() -> DeviceUse | None:
        raise AssertionError("asked")

    host = outcome_of(MemoryError(), Phase.BUILD, None, never)
    outcome_of(ValueError(), Phase.BUILD, None, never)

    assert isinstance(host, OutOfMemory)
    assert host.where == "host"
