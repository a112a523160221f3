"""How does the C library's allocator hold freed memory, and how is that told to it while a process runs?

With glibc's defaults the peak resident memory of identical trials spread by 10 to 20 %: what was freed stays,
in holes that depend on the order of everything before.  Giving each larger block back at once brings the
spread under 0.1 %, but a step then takes up to half as long again: every block is faulted in anew.  So a
trial on a CPU takes its memory figure over passes with a tight allocator, and its speed over passes with a
loose one.

Loose keeps 1 GiB of freed memory at the top of the heap, where glibc by itself keeps 64 MiB at most.  With
glibc's own, the same plain training differed by 30 % from process to process, with how often its heap
happened to be cut and faulted in again; loose, by 2.4 %, and 1.46 times as fast
(benchmarks/allocator_spread.py).  A training is as fast as its trial with MALLOC_MMAP_THRESHOLD_=33554432
and MALLOC_TRIM_THRESHOLD_=1073741824.  CUDA memory has an allocator of its own; none of this touches it.

Source: man 3 mallopt.
"""

from __future__ import annotations

import ctypes
from enum import StrEnum

from memsweep.units import GIB, KIB, MIB

# Source: malloc.h of glibc.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

TIGHT_BYTES = 64 * KIB
LOOSE_BYTES = 32 * MIB  # the largest threshold that glibc takes on 64 bits (HEAP_MAX_SIZE / 2)
KEPT_BYTES = GIB  # freed memory that a loose allocator keeps at the top of its heap


class Allocator(StrEnum):
    """What the C library's allocator does with freed blocks.

    Attributes:
        TIGHT: Gives back every block of `TIGHT_BYTES` or more at once.
        LOOSE: Keeps freed blocks for the next request.
        UNTOUCHED: Another C library, or one that refused: as it was.
    """

    TIGHT = "tight"
    LOOSE = "loose"
    UNTOUCHED = "untouched"


def tighten() -> Allocator:
    """Give freed blocks back at once from now on, and all that is free now."""
    libc = _libc()
    if libc is None:
        return Allocator.UNTOUCHED
    # Arenas stay as they are: a single one cannot be undone, and made every later step 4 to 9 % slower.
    taken = libc.mallopt(_MMAP_THRESHOLD, TIGHT_BYTES)
    taken &= libc.mallopt(_TRIM_THRESHOLD, TIGHT_BYTES)
    libc.malloc_trim(0)
    return Allocator.TIGHT if taken else Allocator.UNTOUCHED


def loosen() -> Allocator:
    """Keep freed blocks for the next request from now on."""
    libc = _libc()
    if libc is None:
        return Allocator.UNTOUCHED
    taken = libc.mallopt(_MMAP_THRESHOLD, LOOSE_BYTES)
    taken &= libc.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
    return Allocator.LOOSE if taken else Allocator.UNTOUCHED


def in_use_bytes() -> int | None:
    """Return what programs hold of the C library's memory now; None where it does not say.

    What a loose allocator keeps free is not in it, so it grows with the first block that is never freed.
    Source: man 3 mallinfo2, of glibc 2.33.
    """
    libc = _libc()
    if libc is None or not hasattr(libc, "mallinfo2"):
        return None
    libc.mallinfo2.restype = _MallInfo
    found = libc.mallinfo2()
    return int(found.uordblks + found.hblkhd)


class _MallInfo(ctypes.Structure):
    """Source: malloc.h of glibc, struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _libc() -> ctypes.CDLL | None:
    """Return glibc, None where the C library is another."""
    libc = ctypes.CDLL(None)
    there = all(hasattr(libc, name) for name in ("gnu_get_libc_version", "mallopt", "malloc_trim"))
    return libc if there else None
