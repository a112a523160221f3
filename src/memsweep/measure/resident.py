"""How much memory does this process hold, as the kernel accounts for it, and is it really its own?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from memsweep.units import KIB

_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Source: Linux Documentation/filesystems/proc.rst: 5 resets the peak resident set size.
_RESET_PEAK = "5"


@dataclass(frozen=True, slots=True)
class Resident:
    """This process's resident memory, as the kernel accounts for it.

    Attributes:
        anonymous_bytes: Not backed by a file: heaps, stacks, and private pages that were written to.
        file_bytes: Backed by files and shared memory: libraries, mapped weights.
        peak_bytes: Highest sum of the two since the process began, or since `reset_peak`.
        data_bytes: Address space for data, resident or not: what RLIMIT_DATA limits.
    """

    anonymous_bytes: int
    file_bytes: int
    peak_bytes: int
    data_bytes: int

    @property
    def peak_anonymous_bytes(self) -> int:
        """The peak less the pages of files, which come early and stay."""
        return max(self.anonymous_bytes, self.peak_bytes - self.file_bytes)


def resident() -> Resident:
    """Return this process's resident memory now.

    Raises:
        RuntimeError: On a system without Linux's /proc.
    """
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise RuntimeError(f"memory on a CPU is read from {_STATUS}, which only Linux has") from error
    fields = dict(line.split(":", 1) for line in lines if ":" in line)

    def size(name: str) -> int:
        return int(fields[name].split()[0]) * KIB

    return Resident(size("RssAnon"), size("RssFile") + size("RssShmem"), size("VmHWM"), size("VmData"))


def reset_peak() -> bool:
    """Let the peak of resident memory begin anew; tell whether the kernel did."""
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def keep_in_memory(model: torch.nn.Module) -> int:
    """Copy weights that lie in a mapped file into memory of the process; return the bytes copied.

    Weights that are loaded in the precision of their file stay pages of that file.  Trained ones become
    memory with the first optimizer step; frozen ones never would, and an adapter would seem to need no base.
    """
    mapped = _mapped_weights()
    copied = 0
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.device.type != "cpu" or not tensor.numel():
            continue
        address = tensor.data_ptr()
        if any(first <= address < last for first, last in mapped):
            tensor.data = tensor.data.clone()
            copied += tensor.numel() * tensor.element_size()
    return copied


def _mapped_weights() -> list[tuple[int, int]]:
    """Return the address ranges at which files of weights are mapped."""
    ranges = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.rpartition(".")[2] in ("safetensors", "bin", "pt"):
            first, last = line.split(" ", 1)[0].split("-")
            ranges.append((int(first, 16), int(last, 16)))
    return ranges
