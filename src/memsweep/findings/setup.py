"""How set-ups differ: what two trials chose differently, technique by technique.

A technique's parameters are part of its option: `micro_batch` is `size size=2` in one set-up and
`size size=4` in another, which differ in one choice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from memsweep.record.trial import TrialResult

SetUp = Mapping[str, str]
"""Technique, or any other searched key, to what was chosen."""

BASELINE = "baseline"
_OPTION, _PARAMETER = "technique/", "technique."


def set_up(result: TrialResult) -> dict[str, str]:
    """Return what a trial chose: every technique, and every other key that was searched.

    A key that exists only with another choice is missing where it does not exist.
    """
    found = dict(result.choice)
    for key, value in result.parameters.items():
        technique, _, parameter = key.removeprefix(_PARAMETER).partition(".")
        if key.startswith(_PARAMETER) and technique in found:
            found[technique] += f" {parameter}={value}"
        elif key.startswith(_OPTION):
            found.setdefault(key.removeprefix(_OPTION), value)
        else:
            found[key] = value
    return found


def differences(one: SetUp, other: SetUp) -> tuple[str, ...]:
    """Return the keys that two set-ups choose differently, in the order of `other`.

    A key that exists in one of them only follows from another difference, and counts where there is none.
    """
    shared = tuple(key for key in other if key in one and one[key] != other[key])
    return shared or tuple(key for key in (*other, *one) if (key in one) != (key in other))


def choice_text(key: str, value: str) -> str:
    """Return one choice as it is labelled everywhere: `adapter=lora`, `batch=4`."""
    return f"{key.rsplit('.', 1)[-1]}={value}"


def number(label: str) -> int | float | str:
    """Return what a label says: a number where it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(label)
    return label
