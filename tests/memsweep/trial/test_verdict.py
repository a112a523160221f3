from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memsweep.ranks.plan import Plan
from memsweep.ranks.simulated import REMARK
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import (
    Crashed,
    CutShort,
    Measured,
    NotInForce,
    Outcome,
    OutOfMemory,
    Phase,
    Reused,
    TimedOut,
)
from memsweep.record.trial import TrialRecord
from memsweep.trial.group import Rank
from memsweep.trial.verdict import SUM, verdict

PLAN = Plan(n_processes=2, distributed_type="FSDP", fsdp_config={"fsdp_version": 2})
KILLED, OUT = int(signal.SIGKILL), 0
MEMORY = OutOfMemory(where="host", phase=Phase.BUILD, requested_bytes=1, held_bytes=2, evidence="no room")
NO_LINE: Any = None
FOLLOWED = Crashed(reason="RuntimeError: the other end is gone", phase=Phase.MEASURE)


def rank(
    number: int, outcome: Outcome | None, *, status: int = OUT, at: float = 1.0, was_killed: bool = False
) -> Rank:
    record = None if outcome is None else TrialRecord(outcome=outcome, facts={"device": "cpu"})
    return Rank(number, 0, NO_LINE, Phase.MEASURE, record, status, at, was_killed)


def told(
    folder: Path, ranks: Sequence[Rank], *, stands_still: int | None = None, n_oom_kills: int = 0
) -> TrialRecord:
    return verdict(
        ranks,
        PLAN,
        TrialFolder(folder),
        stands_still=stands_still,
        patience_seconds=10.0,
        n_oom_kills=n_oom_kills,
        is_simulated=True,
        seconds={"total": 1.0},
    )


def measured(peak: float, remarks: tuple[str, ...] = (), **measures: float) -> Measured:
    return Measured(
        measures={"peak_memory_bytes": peak, "tokens_per_second": 100.0, "loss": peak / 10, **measures},
        remarks=remarks,
    )


def test_bytes_are_those_of_the_process_with_most_and_rates_are_the_groups(tmp_path: Path) -> None:
    record = told(tmp_path, [rank(0, measured(20.0, ("a",))), rank(1, measured(30.0, ("a", "b")))])

    outcome = record.outcome
    assert isinstance(outcome, Measured)
    assert outcome.measures == {
        "peak_memory_bytes": 30.0,
        SUM: 50.0,
        "tokens_per_second": 100.0,
        "loss": 2.0,
    }
    assert outcome.remarks == ("a", "rank 1: b", REMARK)
    assert record.facts["processes"]["ranks"] == [
        {
            "rank": number,
            "phase": "measure",
            "outcome": "measured",
            "device": "cpu",
            "peak_memory_bytes": peak,
        }
        for number, peak in enumerate((20.0, 30.0))
    ]
    assert record.seconds == {"total": 1.0}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        # Who was killed is to blame, not who noticed it.
        (rank(0, FOLLOWED, at=1.0), rank(1, None, status=KILLED, at=1.1), "rank 1: killed by SIGKILL"),
        (rank(0, None, status=KILLED), rank(1, FOLLOWED), "rank 0: killed by SIGKILL"),
        (
            rank(0, FOLLOWED, at=1.0),
            rank(1, None, status=3 << 8, at=1.1),
            "rank 1: its process exited with code 3",
        ),
        (rank(0, FOLLOWED, at=2.0), rank(1, FOLLOWED, at=1.0), "rank 1: RuntimeError"),
        (rank(0, measured(1.0)), rank(1, FOLLOWED), "rank 1: RuntimeError"),
        # One that was ended from here was killed for another's sake.
        (rank(0, FOLLOWED), rank(1, None, status=KILLED, was_killed=True), "rank 0: RuntimeError"),
    ],
)
def test_a_crash_is_told_of_the_rank_that_began_it(
    first: Rank, second: Rank, said: str, tmp_path: Path
) -> None:
    outcome = told(tmp_path, [first, second]).outcome

    assert isinstance(outcome, Crashed)
    assert outcome.reason.startswith(said)


def test_out_of_memory_goes_before_those_who_lost_the_other(tmp_path: Path) -> None:
    record = told(tmp_path, [rank(0, FOLLOWED, at=1.0), rank(1, MEMORY, at=2.0)])

    assert isinstance(record.outcome, OutOfMemory)
    assert record.outcome.evidence == "rank 1: no room"
    assert [one["outcome"] for one in record.facts["processes"]["ranks"]] == ["crashed", "out_of_memory"]


def test_a_kill_of_the_kernels_for_want_of_memory_is_out_of_memory(tmp_path: Path) -> None:
    outcome = told(tmp_path, [rank(0, FOLLOWED), rank(1, None, status=KILLED)], n_oom_kills=1).outcome

    assert isinstance(outcome, OutOfMemory)
    assert outcome.evidence.startswith("rank 1: ended by SIGKILL")


def test_a_group_that_stands_still_has_timed_out_for_the_rank_that_it_waits_for(tmp_path: Path) -> None:
    killed = [rank(number, None, status=KILLED, was_killed=True) for number in (0, 1)]

    outcome = told(tmp_path, killed, stands_still=1).outcome

    assert outcome == TimedOut(
        limit_seconds=10.0, phase=Phase.MEASURE, reason="rank 1 did not go on, and the others waited for it"
    )
    assert outcome.text == "ended after 10 s, in measure: rank 1 did not go on, and the others waited for it"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (NotInForce(differences=("a", "b")), "rank 0: a; rank 0: b"),
        (Reused(trial=3, measures={}), "same set-up as trial 3"),
    ],
)
def test_what_the_first_one_decides_is_the_trials(outcome: Any, said: str, tmp_path: Path) -> None:
    record = told(tmp_path, [rank(0, outcome), rank(1, None, status=KILLED, was_killed=True)])

    assert type(record.outcome) is type(outcome)
    assert record.outcome.text == said


def test_a_trial_that_is_cut_short_keeps_the_largest_peak(tmp_path: Path) -> None:
    ranks = [rank(n, CutShort(reason="worse: so", measures={"peak_memory_bytes": 5.0 + n})) for n in (0, 1)]

    outcome = told(tmp_path, ranks).outcome

    assert isinstance(outcome, CutShort)
    assert outcome.measures == {"peak_memory_bytes": 6.0, SUM: 11.0}
