"""Which figures may be compared: those of the same versions, the same machine and the same data."""

from __future__ import annotations

from collections.abc import Mapping


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
