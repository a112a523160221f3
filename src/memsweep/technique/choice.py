"""What was chosen of a technique: the word that configurations, rules and settings share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenOption:
    """One technique's option, with its parameters.

    Attributes:
        option: The option's name; `baseline` is always one.
        parameters: Parameter to value; all that the option declares.
    """

    option: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
