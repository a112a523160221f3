"""What does torch's allocator have in force, where that can be read without touching a device?

The settings are read from the environment once, when they are first asked for or the first device memory is
allocated; a variable that changes later changes nothing.  Of two variables the older name wins.
Tried with torch 2.13.0.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import torch

from memsweep.machine import ALLOCATOR_VARIABLES


def allocator_settings() -> str | None:
    """Return the settings in force as torch parsed them; None where this torch does not tell."""
    read = getattr(torch._C, "_accelerator_getAllocatorSettings", None)
    return None if read is None else str(read())


def allocator_differences(asked: Mapping[str, str], device: str) -> Iterable[str]:
    """Yield a sentence for each allocator variable that was asked for and has no effect.

    Args:
        asked: Variable to value.
        device: The type of device that the trial computes on.
    """
    names = [name for name in ALLOCATOR_VARIABLES if name in asked]
    if names and device == "cpu":
        yield f"{names[0]}={asked[names[0]]} was asked for; it says nothing about the memory of a cpu"
        return
    winner = next((name for name in ALLOCATOR_VARIABLES if os.environ.get(name)), None)
    found = allocator_settings()
    for name in names:
        if winner is not None and os.environ[winner] != asked[name]:
            yield f"{name}={asked[name]} was asked for; {winner}={os.environ[winner]} goes before it"
        elif found is not None and found != asked[name]:
            yield f"{name}={asked[name]} was asked for; torch's allocator has {found or 'nothing'}"
