"""How a trial ended: a closed list, one type each, with the facts that belong to it.

A number that was not measured does not exist: no type has an optional objective.  How each is told to
Optuna is in `search/tell.py`; this module knows no sampler.

    type           exit code   meaning
    measured       0           has measures
    reused         0           the effective set-up was measured before; names that trial
    out_of_memory  3           the device or the host could not hold it
    cut_short      -           stopped early by a rule, with what was measured until then
    incompatible   2           rules broken, never launched
    not_in_force   4           built, but a requested technique was not in effect
    timed_out      5           took longer than it was given
    non_finite     6           the loss or an objective was NaN or infinite
    crashed        1           any other end
    interrupted    130         the user or the controller ended it
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from memsweep.record.typed import require_numbers, require_types
from memsweep.units import bytes_text, seconds_text


class Phase(StrEnum):
    """Where in its life a trial was.

    Attributes:
        START: Its process exists; environment and imports are being checked.
        DATA: Tokenizer, model folder and source examples are being made or read from the cache.
        BUILD: Model and trainer are being built.
        WARM_UP: Training, not yet counted.  The optimizer's state appears here.
        MEASURE: Training, counted.
        END: Writing its outcome.
    """

    START = "start"
    DATA = "data"
    BUILD = "build"
    WARM_UP = "warm_up"
    MEASURE = "measure"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The trial ran to its end.

    Attributes:
        measures: Name to number, units in the names; the objectives are among them.
        intervals: Name to the lowest and highest value that the measure may have with 95 % confidence, of
            those measures that were seen to vary.
        remarks: What a reader must know before believing the figures, one sentence each: that they had not
            settled, that memory was growing, that the machine was busy.
    """

    type: ClassVar[str] = "measured"
    exit_code: ClassVar[int] = 0
    measures: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for a person."""
        return "; ".join(("measured", *self.remarks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reused:
    """The effective set-up had been measured already.

    Attributes:
        trial: Number of the trial that measured it.
        measures: That trial's measures; empty in the trial's own process, which does not know them.
    """

    type: ClassVar[str] = "reused"
    exit_code: ClassVar[int] = 0
    trial: int
    measures: Mapping[str, float]

    @property
    def text(self) -> str:
        """One line for a person."""
        return f"same set-up as trial {self.trial}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """The device or the host could not hold the trial.

    Attributes:
        where: `device` or `host`.
        phase: Where in the trial's life it happened.
        requested_bytes: The allocation that failed; None where the system does not say.
        held_bytes: What was held then; None where the system does not say.
        evidence: What shows it: the error's own line, or the signal.
    """

    type: ClassVar[str] = "out_of_memory"
    exit_code: ClassVar[int] = 3
    where: str
    phase: Phase
    requested_bytes: int | None
    held_bytes: int | None
    evidence: str

    @property
    def text(self) -> str:
        """One line for a person."""
        asked = f" asking for {bytes_text(self.requested_bytes)}" if self.requested_bytes is not None else ""
        held = f" with {bytes_text(self.held_bytes)} held" if self.held_bytes is not None else ""
        return f"{self.where} out of memory in {self.phase}{asked}{held}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutShort:
    """A rule stopped the trial early.

    Attributes:
        reason: The rule, a colon, and the figures that fulfilled it.
        measures: What was measured until then: peaks that might have grown, rates over fewer passes.
        remarks: What a reader must know before believing the figures, one sentence each.
    """

    type: ClassVar[str] = "cut_short"
    exit_code: ClassVar[int] = 0
    reason: str
    measures: Mapping[str, float]
    remarks: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The reason without the figures."""
        return f"cut short, {self.reason.partition(': ')[0]}"

    @property
    def text(self) -> str:
        """One line for a person."""
        return f"cut short, {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incompatible:
    """Rules were broken, so the trial was never launched.

    Attributes:
        violations: One sentence for each broken rule.
    """

    type: ClassVar[str] = "incompatible"
    exit_code: ClassVar[int] = 2
    violations: tuple[str, ...]

    @property
    def text(self) -> str:
        """One line for a person."""
        return "; ".join(self.violations)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotInForce:
    """The trainer was built, but something requested was not in effect.

    Attributes:
        differences: One sentence each: what was requested, what was found.
    """

    type: ClassVar[str] = "not_in_force"
    exit_code: ClassVar[int] = 4
    differences: tuple[str, ...]

    @property
    def text(self) -> str:
        """One line for a person."""
        return "; ".join(self.differences)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The trial took longer than it was given, and was ended.

    Attributes:
        limit_seconds: What it was given.
        phase: Where in its life it was.
        reason: What took so long; None where it is not known.
    """

    type: ClassVar[str] = "timed_out"
    exit_code: ClassVar[int] = 5
    limit_seconds: float
    phase: Phase
    reason: str | None = None

    @property
    def text(self) -> str:
        """One line for a person."""
        why = "" if self.reason is None else f": {self.reason}"
        return f"ended after {seconds_text(self.limit_seconds)}, in {self.phase}{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite:
    """A loss or an objective was NaN or infinite.

    Attributes:
        what: Its name and value.
        step: Optimizer step, from 1.
    """

    type: ClassVar[str] = "non_finite"
    exit_code: ClassVar[int] = 6
    what: str
    step: int

    @property
    def text(self) -> str:
        """One line for a person."""
        return f"{self.what} in step {self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """Any other end.

    Attributes:
        reason: One line: the exception, or the signal or exit code decoded.
        phase: Where in its life it was.
        last_lines: The end of what it wrote to stderr.
        process_exit_code: What its process exited with, None when a signal ended it or it went on.
        signal: The signal that ended its process, None when there was none.
        may_pass: What ended it was not its own doing and may be gone the next time: a busy device, say.
    """

    type: ClassVar[str] = "crashed"
    exit_code: ClassVar[int] = 1
    reason: str
    phase: Phase
    last_lines: tuple[str, ...] = ()
    process_exit_code: int | None = None
    signal: int | None = None
    may_pass: bool = False

    @property
    def text(self) -> str:
        """One line for a person."""
        return f"crashed in {self.phase}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The user or the controller ended it.

    Attributes:
        reason: Who, and how.
    """

    type: ClassVar[str] = "interrupted"
    exit_code: ClassVar[int] = 130
    reason: str

    @property
    def text(self) -> str:
        """One line for a person."""
        return f"interrupted: {self.reason}"


Outcome = (
    Measured
    | Reused
    | OutOfMemory
    | CutShort
    | Incompatible
    | NotInForce
    | TimedOut
    | NonFinite
    | Crashed
    | Interrupted
)

OUTCOME_TYPES: dict[str, type[Outcome]] = {
    kind.type: kind
    for kind in (
        Measured,
        Reused,
        OutOfMemory,
        CutShort,
        Incompatible,
        NotInForce,
        TimedOut,
        NonFinite,
        Crashed,
        Interrupted,
    )
}


def to_mapping(outcome: Outcome) -> dict[str, Any]:
    """Return `outcome` as JSON-ready data: its `type` and its facts."""
    return {"type": outcome.type, **dataclasses.asdict(outcome)}


def from_mapping(data: Mapping[str, Any], *, is_stored: bool = False) -> Outcome:
    """Return the outcome that `to_mapping` made `data` from.

    Args:
        data: Its type and its facts.
        is_stored: It comes from a file, which may hold anything; else an app has just returned it.

    Raises:
        ValueError: If the type is not on the list, or facts are missing or unknown.
    """
    facts = dict(data)
    name = facts.pop("type", None)
    kind = OUTCOME_TYPES.get(str(name))
    if kind is None:
        raise ValueError(f"outcome type must be one of {sorted(OUTCOME_TYPES)}, got {name!r}")
    known = {entry.name for entry in dataclasses.fields(kind)}
    if set(facts) - known:
        raise ValueError(f"outcome {name} has no {sorted(set(facts) - known)}; it has {sorted(known)}")
    if "phase" in facts:
        facts["phase"] = Phase(facts["phase"])
    for sequence in ("violations", "differences", "last_lines", "remarks"):
        if sequence in facts:
            facts[sequence] = tuple(facts[sequence])
    if isinstance(facts.get("intervals"), Mapping):
        facts["intervals"] = {name: tuple(bounds) for name, bounds in facts["intervals"].items()}
    if is_stored:
        require_types(kind, facts)
        require_numbers(facts, "trial")
    try:
        return kind(**facts)
    except TypeError as error:
        raise ValueError(f"outcome {name}: {error}") from error
