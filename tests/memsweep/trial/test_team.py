from __future__ import annotations

import pickle
import socket
import threading

import pytest

from memsweep.measure.generation import Generated
from memsweep.measure.meter import Reading
from memsweep.measure.steady import Window
from memsweep.measure.tokens import TokenCount
from memsweep.trial.process import BEAT, MEET
from memsweep.trial.team import Line, Team, team


def pair() -> tuple[Line, Line]:
    one, other = socket.socketpair()
    return Line(one), Line(other)


def window(seconds: float, tokens: int, generating: float = 0.0, gathers: int | None = None) -> Window:
    done = Reading(TokenCount(tokens, 2 * tokens), Generated(tokens, generating, 3, gathers))
    return Window(seconds, done)


def test_a_process_alone_is_a_team_that_meets_itself() -> None:
    alone = team()
    its = window(1.0, 10)

    assert (alone.rank, alone.size) == (0, 1)
    assert alone.meet("a") == ["a"]
    assert alone.largest({"a": 1.0}) == {"a": 1.0}
    assert alone.together(its) is its


def test_each_gets_what_all_have_brought() -> None:
    mine, leaders = pair()
    found: list[object] = []
    meeting = threading.Thread(target=lambda: found.append(Team(1, 2, mine).meet({"a": 1.0})))
    meeting.start()
    while not (frames := leaders.arrived()):
        pass
    leaders.send(MEET, pickle.dumps(["theirs", pickle.loads(frames[0][1])]))
    meeting.join(5)

    assert frames[0][0] == MEET
    assert found == [["theirs", {"a": 1.0}]]


def test_frames_arrive_whole_however_they_are_cut() -> None:
    mine, leaders = pair()
    body = bytes(range(256)) * 500
    sender = threading.Thread(target=lambda: [mine.send(BEAT), mine.send(MEET, body), mine.end.close()])
    sender.start()
    frames: list[tuple[bytes, bytes]] = []
    with pytest.raises(EOFError):
        while True:
            frames += leaders.arrived()
    sender.join(5)

    assert frames == [(BEAT, b""), (MEET, body)]


def test_who_waits_for_a_process_that_started_it_and_has_ended_is_told() -> None:
    mine, leaders = pair()
    leaders.end.close()

    with pytest.raises((EOFError, BrokenPipeError)):
        Team(1, 2, mine).meet(None)


class Meeting(Team):
    """A team whose others have brought what they have."""

    def __init__(self, others: list[object]) -> None:
        super().__init__(0, 1 + len(others), None)
        self._others = others

    def meet(self, value: object) -> list[object]:
        return [value, *self._others]


def test_tokens_of_a_window_add_up_and_the_slowest_has_the_time() -> None:
    both = Meeting([window(2.0, 30, 0.5, gathers=3)]).together(window(1.5, 10, 0.3, gathers=3))

    assert both.seconds == 2.0
    assert both.done.counted == TokenCount(40, 80)
    assert both.done.generated == Generated(40, 0.4, 3, 3)


def test_a_measure_is_that_of_the_process_with_most() -> None:
    found = Meeting([{"a": 3.0, "c": 1.0}]).largest({"a": 2.0, "b": 5.0})

    assert found == {"a": 3.0, "b": 5.0, "c": 1.0}
