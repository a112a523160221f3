"""What a cell asks for, and what the app makes of that: said by the app, heard by the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Absence(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absence.ABSENT
"""Stands for the value of a key that has none: null is a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a cell asks for, as the rules see it.

    Attributes:
        options: Technique to option, of those that the space or the command line names.
        parameters: `technique.<technique>.<parameter>` to value, of those named.
        groups: Every other config group or key named, to its value.
        rest: Every override that is about no technique, as text, sorted.
    """

    options: Mapping[str, str]
    parameters: Mapping[str, Any]
    groups: Mapping[str, Any]
    rest: tuple[str, ...]

    def value(self, key: str) -> Any:
        """Return what is asked for at a key, a config group or one within a config; ABSENT if nothing is."""
        for named in (self.groups, self.parameters):
            if key in named:
                return named[key]
        group, _, option = key.partition("/")
        return self.options.get(option, ABSENT) if group == "technique" else ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a request comes to.

    Attributes:
        choice: Technique to option, complete; empty for an app without techniques.
        changes: What the choice changes beside speed and memory.
        violations: One sentence for each broken rule; empty when it may run.
        requested_hash: Equal for requests that ask for the same; empty when rules are broken.
    """

    choice: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    requested_hash: str = ""


Judge = Callable[[Request], Verdict]
