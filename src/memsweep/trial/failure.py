"""Which outcome is it when building or training raises?

Two failures may be gone the next time, because others had the device: it was busy or not ready, or it ran out
of memory while another process held what was missing.  Neither says anything of the set-up.
"""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Callable, Iterator

import torch

from memsweep.errors import ConfigError, IncompatibleTechniques
from memsweep.measure.bracket import NonFiniteLoss
from memsweep.measure.driver import DeviceUse
from memsweep.measure.memory import BudgetExceeded
from memsweep.record.outcome import Crashed, Incompatible, NonFinite, Outcome, OutOfMemory, Phase
from memsweep.units import GIB, KIB, MIB

_UNITS = {"bytes": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}

# Source: CUDA runtime API reference, enum cudaError.
_OUT_OF_MEMORY, _BUSY = 2, 46
_MAY_PASS = {
    _BUSY: "the device is busy or unavailable",
    802: "the device's system is not ready",
    805: "the MPS control daemon does not answer",
    807: "the MPS server is not ready",
    808: "the MPS server has as many clients as it takes",
    809: "the MPS server has as many connections as it takes",
}

# What PyTorch asks the driver for at least, when a request of up to 10 MiB finds no free block.
# Source: torch==2.13.0 c10/core/AllocatorConfig.h, kLargeBuffer.
_LEAST_SEGMENT_BYTES = 20 * MIB


def outcome_of(
    error: Exception,
    phase: Phase,
    held_bytes: int | None,
    device_use: Callable[[], DeviceUse | None] = lambda: None,
) -> Outcome:
    """Return what `error` means for the trial.

    Args:
        error: What was raised.
        phase: Where the trial was.
        held_bytes: What it held then, as far as it is known.
        device_use: Returns who holds the device's memory; asked only when that ran out.
    """
    if isinstance(error, IncompatibleTechniques):
        return Incompatible(violations=error.violations)
    if isinstance(error, ConfigError):
        return Incompatible(violations=tuple(str(error).splitlines()))
    if isinstance(error, NonFiniteLoss):
        return NonFinite(what=f"loss is {error.loss}", step=error.step)
    if isinstance(error, BudgetExceeded):
        return OutOfMemory(
            where="host",
            phase=phase,
            requested_bytes=None,
            held_bytes=error.needed_bytes,
            evidence=str(error),
        )
    where = _out_of_memory(error)
    if where is not None:
        requested_bytes = _requested_bytes(str(error))
        use = device_use() if where == "device" else None
        if use is not None and _others_are_in_the_way(use, requested_bytes):
            reason = f"device out of memory while it was shared: {use.others_text}"
            return _crashed(error, reason, phase, may_pass=True)
        return OutOfMemory(
            where=where,
            phase=phase,
            requested_bytes=requested_bytes,
            held_bytes=held_bytes,
            evidence=_first_line(error),
        )
    reason = f"{type(error).__name__}: {_first_line(error)}"
    passing = next((_MAY_PASS[code] for code in map(_cuda_code, _chain(error)) if code in _MAY_PASS), None)
    if passing is not None:
        return _crashed(error, f"{passing} ({reason})", phase, may_pass=True)
    return _crashed(error, reason, phase)


def _crashed(error: Exception, reason: str, phase: Phase, *, may_pass: bool = False) -> Crashed:
    lines = "".join(traceback.format_exception(error)).splitlines()
    return Crashed(
        reason=reason,
        phase=phase,
        last_lines=tuple(line for line in lines if line.strip())[-12:],
        may_pass=may_pass,
    )


def _others_are_in_the_way(use: DeviceUse, requested_bytes: int | None) -> bool:
    """Tell whether the request failed for what other processes hold, and not for what the trial does.

    Not so when the device has room for it, as then the trial's own budget refused it; nor when it would not
    fit either if the others were gone.
    """
    if not use.others_bytes:
        return False
    if requested_bytes is None:
        return True
    needed_bytes = max(requested_bytes, _LEAST_SEGMENT_BYTES)
    return use.free_bytes < needed_bytes <= use.free_bytes + use.others_bytes


def _cuda_code(error: BaseException) -> int | None:
    """Return the number of the CUDA runtime's error, None when the failure is another.

    `AcceleratorError` carries it.  What fails earlier, while devices are counted, is a RuntimeError that has
    the number in its text; what another library raises has the driver's words: there is no more to go by.
    Source: torch==2.13.0 torch/csrc/Exceptions.cpp, torch/cuda/__init__.py, c10/cuda/CUDAFunctions.cpp.
    """
    code = getattr(error, "error_code", None) if isinstance(error, torch.AcceleratorError) else None
    if code is not None:
        return int(code)
    text = str(error)
    if isinstance(error, torch.cuda.CudaError):
        found = re.search(r"\((\d+)\)$", text)
    elif isinstance(error, RuntimeError) and "cudaGetDeviceCount" in text:
        found = re.search(r"\bError (\d+): ", text)
    else:
        is_busy = isinstance(error, RuntimeError) and "CUDA" in text and "busy or unavailable" in text
        return _BUSY if is_busy else None
    return int(found.group(1)) if found else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from or after."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _out_of_memory(error: BaseException) -> str | None:
    """Return whose memory ran out, None when something else happened."""
    # What CUDA itself cannot make room for, a context or a library's workspace, is no OutOfMemoryError.
    if isinstance(error, torch.OutOfMemoryError) or _cuda_code(error) == _OUT_OF_MEMORY:
        return "device"
    if isinstance(error, MemoryError):
        return "host"
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "host"
    # PyTorch's CPU allocator has no exception class of its own: its name in the message is all there is.
    # Source: torch==2.13.0 c10/core/impl/alloc_cpu.cpp.
    if isinstance(error, RuntimeError) and "DefaultCPUAllocator: " in str(error):
        return "host"
    cause = error.__cause__ or error.__context__
    return _out_of_memory(cause) if cause is not None else None


def _requested_bytes(text: str) -> int | None:
    """Return the size of the allocation that failed, where the message says it: a fact beside others."""
    found = re.search(r"tried to allocate ([\d.]+) ?(bytes|KiB|MiB|GiB|B)\b", text, re.IGNORECASE)
    return round(float(found.group(1)) * _UNITS[found.group(2)]) if found else None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
