"""What a rule of an option says: a condition on the rest of a trial, why, and where that is known from.

These classes hold; `reading` makes them from YAML and `compatibility` judges with them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

FACTS: Mapping[str, tuple[str, ...]] = {
    "trainer": (),  # those of conf/trainer
    "device": ("cpu", "cuda"),
    "bf16": ("native", "emulated"),
}
"""What a rule may say of the trial's circumstances, and what each can be."""

NUMBERS = ("batch", "measure.evaluation_examples")
"""Numbers of the configuration that a rule may be about; `batch` is `trainer.batch`."""

ARGUMENT = "trainer.arguments."
"""What begins the key of a condition on a field of the trainer's own arguments."""


def is_circumstance(key: str) -> bool:
    """Tell whether a condition's key is about the trial's circumstances, not about the chosen options."""
    return key in FACTS or key in NUMBERS or key.startswith(ARGUMENT)


class RuleKind(enum.Enum):
    """Whether a rule's condition must hold or must not."""

    REQUIRES = "requires"
    EXCLUDES = "excludes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A claim about one fact: an option, a parameter, the trainer, the device, or the configuration.

    Attributes:
        key: `adapter` (its option), `truncation.max_length` (a parameter), `trainer`, `device`,
            `trainer.arguments.beta` (a field) or `measure.evaluation_examples` (a number).
        allowed: The claim is that the fact is one of these; empty when it is about something else.
        other_than: The claim is that the fact is none of these.  The catalogue turns it into `allowed`,
            so that a message can list what there is.
        at_least: The claim is that the fact is a number not below this.
        at_most: The claim is that the fact is a number not above this.
        above: The claim is that the fact is a number greater than this.
        divides: The claim is that the fact divides this number of the circumstances: `batch`.
    """

    key: str
    allowed: tuple[Any, ...] = ()
    other_than: tuple[Any, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    divides: str | None = None

    def holds(self, fact: object, numbers: Mapping[str, int]) -> bool:
        """Tell whether `fact` is as claimed.  A fact that does not exist (None) is not.

        Args:
            fact: What the key stands for; None when the option lacks it or the configuration leaves it.
            numbers: Numbers of the circumstances; what is not among them is not judged.
        """
        if self.allowed:
            return fact in self.allowed
        if not isinstance(fact, (int, float)):
            return False
        if self.divides is not None:
            whole = numbers.get(self.divides)
            return whole is None or (fact > 0 and whole % fact == 0)
        return (
            (self.at_least is None or fact >= self.at_least)
            and (self.above is None or fact > self.above)
            and (self.at_most is None or fact <= self.at_most)
        )

    def text(self, numbers: Mapping[str, int]) -> str:
        """The claim in words: `adapter=dora or lora`, `truncation.max_length at least 64`."""
        if self.allowed:
            return f"{self.key}={one_of(self.allowed)}"
        if self.divides is not None:
            return f"{self.key} to divide {self.divides} ({numbers.get(self.divides)})"
        bounds = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most))
        return f"{self.key} " + " and ".join(
            f"{word} {bound:g}" for word, bound in bounds if bound is not None
        )

    def remedy(self, numbers: Mapping[str, int]) -> str:
        """What to do about the key: `type trainer.arguments.beta=0.1` if one value fits, else its bound."""
        if len(self.allowed) == 1:
            return f"type {self.key}={_typed(self.allowed[0])}"
        return f"set {self.key} to {one_of(self.allowed)}" if self.allowed else f"set {self.text(numbers)}"


def _typed(value: object) -> str:
    """Return a value as it is typed: `true`, `null`."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def one_of(values: Iterable[Any]) -> str:
    """Return values as people list them: `dora, lora or vera`; words are sorted, numbers are not."""
    listed = list(values)
    texts = [str(value) for value in listed]
    if all(isinstance(value, str) for value in listed):
        texts.sort()
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A declared demand of one option on the rest of a trial.

    Attributes:
        kind: Whether the condition must hold (requires) or must not (excludes).
        any_of: Alternatives, each a mapping of key to condition of which all must hold; the condition
            is that one alternative does.
        because: Why, in words that fit after a colon.
        source: Where that is known from.
        trainers: The rule is one for these trainers only; empty means all.
        versions: Package to version specifier: the rule is one for these versions only.
    """

    kind: RuleKind
    any_of: tuple[Mapping[str, Condition], ...]
    because: str
    source: str
    trainers: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
