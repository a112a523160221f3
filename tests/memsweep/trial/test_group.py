from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from memsweep.errors import TrialError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Measured, Phase
from memsweep.record.trial import TrialRecord
from memsweep.trial import group
from memsweep.trial.group import Group, Rank
from memsweep.trial.team import team

MEASURED = TrialRecord(outcome=Measured(measures={"a": 1.0}))


def test_a_process_with_threads_is_not_forked(tmp_path: Path) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(TrialError, match="imports have started"):
            Group(2, TrialFolder(tmp_path), 5.0).run(lambda _: MEASURED)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("record", "status", "failed"),
    [
        (None, None, False),
        (None, 0, True),
        (MEASURED, None, False),
        (MEASURED, 0, False),
        (TrialRecord(outcome=Crashed(reason="so", phase=Phase.BUILD)), None, True),
    ],
)
def test_a_rank_has_failed_when_it_ends_without_a_measurement(
    record: TrialRecord | None, status: int | None, failed: bool
) -> None:
    rank = Rank(0, 1, None, record=record, status=status)  # type: ignore[arg-type]

    assert rank.has_failed == failed


def test_ranks_meet_and_each_writes_to_logs_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, whose other threads are the tests' own and hold no lock that the ranks need."""
    monkeypatch.setattr(group.kernel, "thread_names", lambda: ["main"])

    def live(rank: int) -> TrialRecord:
        os.write(1, f"this is {rank}".encode())  # past what captures the tests' own
        found = team().meet(10 * rank)
        return TrialRecord(outcome=Measured(measures={"sum": sum(found), "size": team().size}))

    ranks = Group(3, TrialFolder(tmp_path), 30.0)
    n_started = []
    ranks.run(live, lambda: n_started.append(len(ranks.ranks)))

    records = [rank.record for rank in ranks.ranks]
    assert [record and record.outcome for record in records] == [
        Measured(measures={"sum": 30, "size": 3})
    ] * 3
    assert [rank.status for rank in ranks.ranks] == [0, 0, 0]
    assert n_started == [3]
    assert (tmp_path / "ranks" / "2" / "stdout.log").read_text() == "this is 2"
    assert team().size == 1
