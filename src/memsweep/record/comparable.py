"""Which figures may be compared, and how closely: those of the same versions, machine and data."""

from __future__ import annotations

from collections.abc import Mapping

MEMORY_SPREAD = 0.01
"""Half the spread of resident memory among identical trials, as a share: they lay within 2 % of each other.

It stands in where a trial was run once, since a peak is one number a run and shows no spread of its own.
"""


def differences(own: Mapping[str, str], others: Mapping[str, str], whose: str) -> tuple[str, ...]:
    """Return how two trials' conditions, or versions, differ: one sentence each, sorted by name.

    What one of them does not record at all is not held against it: other apps record nothing.

    Args:
        own: Name to value, of the trial that is spoken of.
        others: The same of what it would be compared with.
        whose: What that is called, e.g. `trial 0`.
    """
    if not own or not others:
        return ()
    names = sorted(name for name in {*own, *others} if own.get(name) != others.get(name))
    absent = "none recorded"
    return tuple(
        f"other {name.replace('_', ' ')} than {whose}: "
        f"{own.get(name, absent)}, not {others.get(name, absent)}"
        for name in names
    )
