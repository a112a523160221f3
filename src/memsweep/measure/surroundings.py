"""Did anything but the trial itself decide how fast it was: other programs, other users of the device, heat?

Looked at from the begin of the first timed pass to the end of the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch

from memsweep.measure.clocks import DeviceState, device_state, throttling
from memsweep.measure.contention import Contention
from memsweep.measure.driver import device_use


@dataclass(frozen=True, slots=True)
class Disturbances:
    """What was seen beside the trial.

    Attributes:
        facts: JSON-ready.
        remarks: What a reader must know of it, one sentence each.
    """

    facts: dict[str, Any]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How things were when the timed passes began.  Made by `begin`.

    Attributes:
        contention: The kernel's accounts.
        uuid: Of the CUDA device; None on a CPU.
        state: How the device ran; None where that is not known.
    """

    contention: Contention
    uuid: str | None
    state: DeviceState | None

    @classmethod
    def begin(cls, n_threads: int, uuid: str | None = None, n_processes: int = 1) -> Self:
        """Begin to look.

        Args:
            n_threads: Compute threads of this process.
            uuid: Of the CUDA device that is computed on; None on a CPU.
            n_processes: Processes of the trial, each with so many threads.
        """
        state = None if uuid is None else device_state(uuid)
        return cls(Contention.begin(n_threads, n_processes=n_processes), uuid, state)

    def end(self) -> Disturbances:
        """Return what was seen since the begin."""
        busyness = self.contention.end()
        facts: dict[str, Any] = busyness.facts()
        remarks = [busyness.remark]
        if self.uuid is not None:
            state, use = device_state(self.uuid), device_use(self.uuid)
            remarks += [throttling(self.state, state), None if use is None else use.remark]
            facts["device"] = None if state is None else state.facts()
        return Disturbances(facts, tuple(remark for remark in remarks if remark is not None))


def device_uuid() -> str:
    """Return the UUID of the CUDA device that is computed on, as the driver knows it."""
    return str(torch.cuda.get_device_properties().uuid)
