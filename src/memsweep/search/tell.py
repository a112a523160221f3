"""What the sampler hears of a finished trial: the one mapping from outcomes to Optuna's states.

Optuna's samplers do not see trials that FAIL: told that a set-up failed for lack of memory, they ask for
it again for ever.  So whatever the set-up itself brought about is COMPLETE and infeasible, with finite
values that no report shows; FAIL is for what another try might not repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from optuna.trial import TrialState

from memsweep.record.outcome import (
    Crashed,
    CutShort,
    Incompatible,
    Interrupted,
    Measured,
    NonFinite,
    NotInForce,
    OutOfMemory,
    Reused,
    TimedOut,
)
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult

Known = Mapping[str, float] | None

ENDED = "ended_early"
"""What a trial violates that has no figures, or none to be compared; every trial told has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What Optuna is told of a trial.

    Attributes:
        state: COMPLETE or FAIL.
        values: One an objective; None when it failed.
        constraints: Name to violation as a share of its bound; the same names for every trial told.
        known: One an objective: `{"is": value}`, `{"at_best": value}`, or None where nothing is known.
        seconds: What the trial took; None where nobody measured.
    """

    state: TrialState
    values: Sequence[float] | None
    constraints: Mapping[str, float]
    known: Sequence[Known]
    seconds: float | None = None


def told(result: TrialResult, study: Study, worst: Sequence[float]) -> Told:
    """Return what Optuna is told of `result`.

    Args:
        result: The finished trial.
        study: Its study.
        worst: Finite values for a trial that has none, one an objective.
    """
    return replace(_of_outcome(result, study, worst), seconds=result.seconds.get("total"))


def _of_outcome(result: TrialResult, study: Study, worst: Sequence[float]) -> Told:
    outcome = result.outcome
    nothing: list[Known] = [None for _ in study.objectives]
    match outcome:
        case Measured() | Reused():
            values = [result.objectives[name] for name in study.objectives]
            # Figures of other data, or of another machine, must not draw the sampler there.
            apart = 1.0 if result.unlike else 0.0
            return Told(
                state=TrialState.COMPLETE,
                values=values,
                constraints=_violations(result, study, apart),
                known=[None if result.unlike else {"is": value} for value in values],
            )
        case CutShort():
            # What was measured until then is the truth about the set-up, as far as it goes.  With every
            # objective among it the trial is known to be dominated, which is no violation of anything.
            known = zip(study.objectives, worst, strict=True)
            values = [outcome.measures.get(name, value) for name, value in known]
            ended = 0.0 if study.objectives.keys() <= outcome.measures.keys() else 1.0
            return Told(
                state=TrialState.COMPLETE,
                values=values,
                constraints=_violations(result, study, ended),
                known=[_is(outcome.measures.get(name)) for name in study.objectives],
            )
        case OutOfMemory():
            return Told(
                state=TrialState.COMPLETE,
                values=list(worst),
                constraints=_violations(result, study, 1.0),
                known=[_at_best(name, outcome) for name in study.objectives],
            )
        case TimedOut() | NotInForce() | Incompatible():
            constraints = _violations(result, study, 1.0)
            return Told(state=TrialState.COMPLETE, values=list(worst), constraints=constraints, known=nothing)
        case Crashed() | NonFinite() | Interrupted():
            return Told(state=TrialState.FAIL, values=None, constraints={}, known=nothing)
        case _:
            assert_never(outcome)


def counts_as_trial(result: TrialResult) -> bool:
    """Tell whether `result` is one of the n_trials that were asked for."""
    outcome = result.outcome
    match outcome:
        case Measured() | OutOfMemory() | CutShort() | NotInForce() | TimedOut() | NonFinite() | Crashed():
            return result.reused_from is None
        case Reused() | Incompatible() | Interrupted():
            return False
        case _:
            assert_never(outcome)


def is_failure(result: TrialResult) -> bool:
    """Tell whether `result` is a failure of the app or the machine, not of the set-up."""
    return isinstance(result.outcome, Crashed | NonFinite)


def worst_values(study: Study, results: Sequence[TrialResult]) -> list[float]:
    """Return a finite value for each objective that is bad, but not so bad that it bends a sampler's model.

    The worst corner of the study where it is fixed, else the worst measured, else 0 or 1.
    """
    values = []
    for name, direction in study.objectives.items():
        measured = [
            result.objectives[name] for result in results if name in result.objectives and not result.unlike
        ]
        worst = min if direction is Direction.MAXIMIZE else max
        fallback = 0.0 if direction is Direction.MAXIMIZE else 1.0
        known = [study.reference[name].value] if name in study.reference else []
        values.append(float(worst([*measured, *known], default=fallback)))
    return values


def _is(value: float | None) -> Known:
    return None if value is None else {"is": value}


def _at_best(objective: str, outcome: OutOfMemory) -> Known:
    """Return what running out of memory says of an objective: bytes were at least those asked for in all."""
    held, requested = outcome.held_bytes, outcome.requested_bytes
    if not objective.endswith("_bytes") or held is None:
        return None
    return {"at_best": float(held + (requested or 0))}


def _violations(result: TrialResult, study: Study, ended: float) -> dict[str, float]:
    """Return every constraint as a share of its bound, so that bytes and tokens weigh the same."""
    found = {}
    for name, constraint in study.constraints.items():
        scale = abs(constraint.bound) if constraint.bound else 1.0
        found[name] = result.constraints.get(name, 0.0) / scale
    return {**found, ENDED: ended}
