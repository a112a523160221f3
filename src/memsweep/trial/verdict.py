"""One outcome for all processes of a trial.

all have measured       one measurement: bytes are those of the process with most, rates are the group's
one has failed          what became of that one, with its rank
several have failed     what became of the one that the others only followed: one that was killed, then one
that ran out of memory, then the first to say so
none went on            timed out, for the rank that the group stood still for
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memsweep.ranks.plan import Plan
from memsweep.ranks.simulated import REMARK
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import (
    Crashed,
    CutShort,
    Incompatible,
    Interrupted,
    Measured,
    NonFinite,
    NotInForce,
    Outcome,
    OutOfMemory,
    Reused,
    TimedOut,
)
from memsweep.record.trial import TrialRecord
from memsweep.trial.answer import ProcessEnd
from memsweep.trial.ending import outcome_of
from memsweep.trial.group import Rank
from memsweep.trial.server import describe_exit
from memsweep.trial.team import largest

SUM = "summed_peak_memory_bytes"
"""What the peaks of all processes come to; they need not have been at one time."""

_OF_BYTES = "_bytes"


def verdict(
    ranks: Sequence[Rank],
    plan: Plan,
    folder: TrialFolder,
    *,
    stands_still: int | None,
    patience_seconds: float,
    n_oom_kills: int,
    is_simulated: bool,
    seconds: Mapping[str, float],
) -> TrialRecord:
    """Return what became of a trial.

    Args:
        ranks: Its processes, after their end.
        plan: What it was asked to be.
        folder: Of the trial.
        stands_still: The rank that the group stood still for; None when it did not.
        patience_seconds: For how long none of them need have computed.
        n_oom_kills: Processes that the kernel ended for want of memory meanwhile, on the whole host.
        is_simulated: Whether they stood in for devices.
        seconds: By phase.
    """
    outcomes = {rank.number: _outcome(rank, folder, n_oom_kills) for rank in ranks}
    records = [rank.record for rank in ranks if rank.record is not None]
    if stands_still is not None:
        text = f"rank {stands_still} did not go on, and the others waited for it"
        outcome: Outcome = TimedOut(
            limit_seconds=patience_seconds, phase=ranks[stands_still].phase, reason=text
        )
    else:
        culprit = _culprit(ranks, outcomes)
        outcome = outcomes[culprit]
        if isinstance(outcome, Measured | CutShort):
            outcome = _joined(outcome, [found for found in outcomes.values() if type(found) is type(outcome)])
            outcome = replace(outcome, remarks=(*outcome.remarks, *([REMARK] if is_simulated else [])))
        else:
            outcome = _named(outcome, culprit)
    best = records[0] if records else TrialRecord(outcome=outcome)
    processes = {
        "n_processes": plan.n_processes,
        "distributed_type": plan.distributed_type,
        "simulated": is_simulated,
        "ranks": [_facts(rank, outcomes[rank.number]) for rank in ranks],
    }
    return replace(best, outcome=outcome, seconds=seconds, facts={**best.facts, "processes": processes})


def _outcome(rank: Rank, folder: TrialFolder, n_oom_kills: int) -> Outcome:
    """Return what became of the trial in one of its processes."""
    if rank.record is not None:
        return rank.record.outcome
    code, number = (None, None) if rank.status is None else describe_exit(rank.status)
    end = ProcessEnd(
        exit_code=code,
        signal=number,
        phase=rank.phase,
        last_lines=folder.rank(rank.number).last_lines(),
        n_oom_kills=n_oom_kills,
    )
    return outcome_of(end, None)


def _culprit(ranks: Sequence[Rank], outcomes: dict[int, Outcome]) -> int:
    """Return the rank whose outcome is the group's."""
    # Those that were ended from here have failed for nothing of their own.
    failed = [rank for rank in ranks if rank.has_failed and not (rank.was_killed and rank.record is None)]

    def order(rank: Rank) -> tuple[Any, ...]:
        died = rank.record is None
        return (not died, not isinstance(outcomes[rank.number], OutOfMemory), rank.ended_seconds)

    return min(failed, key=order).number if failed else 0


def _joined(outcome: Measured | CutShort, every: Sequence[Any]) -> Measured | CutShort:
    """Return the measures of all: bytes are those of the process with most, all else is the first one's."""
    most = largest([found.measures for found in every])
    measures = {
        name: most[name] if _OF_BYTES in name else outcome.measures.get(name, value)
        for name, value in most.items()
    }
    measures[SUM] = sum(found.measures.get("peak_memory_bytes", 0.0) for found in every)
    said = list(outcome.remarks)
    for number, found in enumerate(every):
        said += [f"rank {number}: {text}" for text in found.remarks if text not in said]
    return replace(outcome, measures=measures, remarks=tuple(said))


def _named(outcome: Outcome, rank: int) -> Outcome:
    """Return the outcome of one process as the trial's, saying whose it is."""
    who = f"rank {rank}: "
    match outcome:
        case Crashed():
            return replace(outcome, reason=who + outcome.reason)
        case OutOfMemory():
            return replace(outcome, evidence=who + outcome.evidence)
        case NonFinite():
            return replace(outcome, what=who + outcome.what)
        case NotInForce():
            return replace(outcome, differences=tuple(who + text for text in outcome.differences))
        case Measured() | Reused() | CutShort() | Incompatible() | TimedOut() | Interrupted():
            return outcome  # the same for all


def _facts(rank: Rank, outcome: Outcome) -> dict[str, Any]:
    """Return what is worth knowing of one process."""
    measures = getattr(outcome, "measures", {})
    facts: dict[str, Any] = {"rank": rank.number, "phase": str(rank.phase), "outcome": outcome.type}
    if rank.was_killed:
        facts["outcome"] = "ended with the others"
    if "peak_memory_bytes" in measures:
        facts["peak_memory_bytes"] = measures["peak_memory_bytes"]
    if rank.record is not None:
        facts |= {
            name: rank.record.facts[name] for name in ("device", "threads") if name in rank.record.facts
        }
        if rank.record.effective_hash is not None:
            facts["effective_hash"] = rank.record.effective_hash
    return facts
