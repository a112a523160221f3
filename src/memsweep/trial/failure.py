"""Which outcome is it when building or training raises?"""

from __future__ import annotations

import errno
import re
import traceback

import torch

from memsweep.errors import ConfigError, IncompatibleTechniques
from memsweep.measure.bracket import NonFiniteLoss
from memsweep.measure.memory import BudgetExceeded
from memsweep.record.outcome import Crashed, Incompatible, NonFinite, Outcome, OutOfMemory, Phase
from memsweep.units import GIB, KIB, MIB

_UNITS = {"bytes": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}


def outcome_of(error: Exception, phase: Phase, held_bytes: int | None) -> Outcome:
    """Return what `error` means for the trial.

    Args:
        error: What was raised.
        phase: Where the trial was.
        held_bytes: What it held then, as far as it is known.
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
        return OutOfMemory(
            where=where,
            phase=phase,
            requested_bytes=_requested_bytes(str(error)),
            held_bytes=held_bytes,
            evidence=_first_line(error),
        )
    lines = "".join(traceback.format_exception(error)).splitlines()
    return Crashed(
        reason=f"{type(error).__name__}: {_first_line(error)}",
        phase=phase,
        last_lines=tuple(line for line in lines if line.strip())[-12:],
    )


def _out_of_memory(error: BaseException) -> str | None:
    """Return whose memory ran out, None when something else happened."""
    if isinstance(error, torch.OutOfMemoryError):
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
