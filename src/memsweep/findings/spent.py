"""Where the time of a study's trials went: by phase, and by how trials ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memsweep.findings.words import PHASES
from memsweep.record.outcome import OUTCOME_TYPES
from memsweep.record.trial import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of all trials together, their first runs alone.

    Attributes:
        total: All of it.
        phases: Phase and its seconds, in the order of a trial's life.
        rest: What no phase has recorded.
        outcomes: Outcome type, number of trials and their seconds, in the order of `OUTCOME_TYPES`.
    """

    total: float
    phases: tuple[tuple[str, float], ...]
    rest: float
    outcomes: tuple[tuple[str, int, float], ...]


def spent(results: Iterable[TrialResult]) -> Spent:
    """Return where the time of trials went; what was not recorded is not there."""
    phases: dict[str, float] = {}
    outcomes: dict[str, list[float]] = {}
    for result in results:
        own = {name: seconds for name, seconds in result.seconds.items() if name != "total"}
        for name, seconds in own.items():
            phases[name] = phases.get(name, 0.0) + seconds
        took = max(result.seconds.get("total", 0.0), sum(own.values()))
        outcomes.setdefault(result.outcome.type, []).append(took)
    order = {name: index for index, name in enumerate(PHASES)}
    names = sorted(phases, key=lambda name: (order.get(name, len(order)), name))
    total = sum(sum(took) for took in outcomes.values())
    return Spent(
        total=total,
        phases=tuple((name, phases[name]) for name in names if phases[name] > 0),
        rest=max(0.0, total - sum(phases.values())),
        outcomes=tuple(
            (name, len(outcomes[name]), sum(outcomes[name])) for name in OUTCOME_TYPES if name in outcomes
        ),
    )
