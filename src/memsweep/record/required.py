"""Whether a run has measured what its study is about."""

from __future__ import annotations

import math
from dataclasses import replace

from memsweep.record.outcome import Crashed, Measured, NonFinite, Outcome, Phase
from memsweep.record.study import Study

_REASON_LENGTH = 500


def judged(outcome: Outcome, study: Study) -> Outcome:
    """Return `outcome`, or what it is when an objective or a constrained measure is missing or not finite."""
    if not isinstance(outcome, Measured):
        return outcome
    measures = outcome.measures
    needed = [*study.objectives, *(constraint.measure for constraint in study.constraints.values())]
    missing = [name for name in dict.fromkeys(needed) if name not in measures]
    if missing:
        reason = (
            f"the app did not return {', '.join(missing)}, which the study is about; it returned "
            f"{', '.join(measures) or 'no number'}"
        )
        return Crashed(reason=reason[:_REASON_LENGTH], phase=Phase.START)
    broken = [f"{name}={measures[name]}" for name in needed if not math.isfinite(measures[name])]
    if broken:
        return NonFinite(what=", ".join(broken), step=0)
    finite = {name: value for name, value in measures.items() if math.isfinite(value)}
    intervals = {name: ends for name, ends in outcome.intervals.items() if all(map(math.isfinite, ends))}
    if len(finite) == len(measures) and len(intervals) == len(outcome.intervals):
        return outcome
    return replace(outcome, measures=finite, intervals=intervals)
