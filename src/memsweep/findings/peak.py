"""What a study's peak memory is the peak of, as its trials recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memsweep.units import bytes_text


def peak_text(facts: Mapping[str, Any]) -> str:
    """Return what peak memory means, as one sentence; empty where that was not recorded.

    Args:
        facts: What a measured trial recorded of itself.
    """
    memory = facts.get("memory")
    if not isinstance(memory, Mapping):
        return ""
    start = memory.get("start_anonymous_bytes")
    if isinstance(start, int | float):
        return (
            "Peak memory is what the trial added to its process: the growth of anonymous memory from just "
            f"before the model is built. The process held {bytes_text(start)} by then: add that for all of "
            "it."
        )
    if str(facts.get("device", "")).startswith("cuda"):
        return (
            "Peak memory is what PyTorch reserved on the device at its peak; the driver counts more for the "
            "process, its CUDA context among it."
        )
    return f"Peak memory is {memory['kind']}." if "kind" in memory else ""
