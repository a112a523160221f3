"""What a trial must beat to be worth going on with: its study's demands, and the trials that are best so far.

The study knows them, and the trial's process is told; what follows from them is decided where the trial is
measured (`memsweep.trial.contest`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memsweep.record.study import Constraint, Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A trial that another may turn out to be worse than.

    Attributes:
        number: Its number.
        objectives: Name to value, as its study shows it.
        worst: Name to the worst that the value may be, by what is known of its spread.
    """

    number: int
    objectives: Mapping[str, float]
    worst: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """What one trial is held against while it is measured.

    Attributes:
        objectives: Name to direction.
        limits: Name to demand, of those that say how much a measure may be at most.
        best: The trials that it is compared with.
        conditions: Under which those were measured: a trial under others is not compared with them.
        versions: Package to version, likewise.
    """

    objectives: Mapping[str, Direction]
    limits: Mapping[str, Constraint] = field(default_factory=dict)
    best: tuple[Rival, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
