from __future__ import annotations

from collections.abc import Iterator

import pytest

from memsweep.record.outcome import Phase
from memsweep.record.rivals import Rivals
from memsweep.record.study import Direction
from memsweep.trial import process


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[bytes, bytes]]]:
    """Make this process a trial's for a while, and return what it sends."""
    sent: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(process, "_send", None)
    monkeypatch.setattr(process, "_marks", [])
    monkeypatch.setattr(process, "_known", {})
    process.enter(lambda kind, body: sent.append((kind, body)), began=100.0)
    yield sent


def test_outside_a_trial_reporting_a_phase_does_nothing() -> None:
    process.report_phase(Phase.BUILD)

    assert process.in_trial_process() is False
    assert process.phases() == {}


def test_a_phase_is_sent_with_the_clock_of_the_whole_system(sent: list[tuple[bytes, bytes]]) -> None:
    process.report_phase(Phase.BUILD)

    ((kind, body),) = sent
    name, at = body.decode().split()
    assert (kind, name) == (process.PHASE, "build")
    assert float(at) > 0


def test_start_counts_from_before_the_fork(
    sent: list[tuple[bytes, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.5, 103.0])
    monkeypatch.setattr(process.time, "monotonic", lambda: next(clock))
    process.report_phase(Phase.BUILD)

    assert process.phases() == {"start": 0.5, "build": 2.5}


def test_a_phase_entered_twice_adds_up() -> None:
    marks = [(Phase.START, 0.0), (Phase.BUILD, 1.0), (Phase.DATA, 3.0), (Phase.BUILD, 4.0)]

    assert process.durations(marks, end=10.0) == {"start": 1.0, "build": 8.0, "data": 1.0}


def test_no_marks_are_no_seconds() -> None:
    assert process.durations([], end=10.0) == {}
    assert process.last_phase([]) is Phase.START


def test_known_set_ups_are_a_copy(sent: list[tuple[bytes, bytes]]) -> None:
    process.learn_set_ups({"96e3": 4})
    process.known_set_ups()["other"] = 5

    assert process.known_set_ups() == {"96e3": 4}


def test_rivals_are_none_until_they_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_rivals", None)
    rivals = Rivals(objectives={"speed": Direction.MAXIMIZE})
    before = process.known_rivals()
    process.learn_rivals(rivals)

    assert before is None
    assert process.known_rivals() is rivals
