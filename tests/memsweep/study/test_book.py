"""Trials entered one by one come to what all of them together do."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsweep.record.asked import Asked
from memsweep.record.outcome import Crashed, Interrupted, Measured, Outcome, OutOfMemory, Phase, Reused
from memsweep.record.study import Constraint, Direction, Study
from memsweep.record.trial import TrialRecord
from memsweep.search.tell import counts_as_trial
from memsweep.study.book import Book, Ended
from memsweep.study.judge import settled

MEMORY = OutOfMemory(where="device", phase=Phase.BUILD, requested_bytes=1, held_bytes=1, evidence="")
LIMITS = {
    "size": Constraint(measure="size", upper=True, bound=80.0),
    "speed": Constraint(measure="speed", upper=False, of_baseline=True),
}


def study(n_objectives: int) -> Study:
    names = ("speed", "size", "loss")[:n_objectives]
    directions = [Direction.MAXIMIZE, Direction.MINIMIZE, Direction.MINIMIZE]
    objectives = dict(zip(names, directions, strict=False))
    return Study(name="s", created="then", command="c", objectives=objectives, constraints=LIMITS)


def random_outcome(rng: random.Random, book: Book) -> Outcome:
    match rng.randrange(8):
        case 0:
            return Crashed(reason="a test", phase=Phase.BUILD)
        case 1:
            return MEMORY
        case 2:
            return Interrupted(reason="a test")
        case 3 if book.known_set_ups:
            number = rng.choice(sorted(book.known_set_ups.values()))
            return Reused(trial=number, measures=book[number].measures)
        case _:
            names = ("speed", "size", "loss")
            return Measured(measures={name: float(rng.randrange(1, 100)) for name in names})


def enter(book: Book, number: int, outcome: Outcome, rng: random.Random) -> None:
    facts: dict[str, Any] = {"conditions": {"data": rng.choice("aaaab")}, "versions": {"torch": "2"}}
    record = TrialRecord(outcome=outcome, effective_hash=f"{number:04d}", **facts)
    asked = Asked(number=number, overrides=(f"x={number}",), is_baseline=number == 0)
    book.enter(asked, Ended(record=record, folder=Path("nowhere")))


@pytest.mark.parametrize("seed", range(40))
def test_entering_one_by_one_is_judging_all_together(seed: int) -> None:
    rng = random.Random(seed)
    book = Book(study(n_objectives=1 + seed % 3))
    for number in range(rng.randrange(1, 40)):
        enter(book, number, random_outcome(rng, book), rng)
        measured = [one.number for one in book.results if isinstance(one.outcome, Measured)]
        if measured and rng.random() < 0.3:
            worse = Measured(
                measures={name: float(rng.randrange(1, 100)) for name in ("speed", "size", "loss")}
            )
            book.enter_repeat(rng.choice(measured), rng.choice([worse, worse, MEMORY]))
        baseline = book[0].medians
        cleared = [replace(one, on_front=False, feasible=False, constraints={}) for one in book.results]
        whole_study, whole = settled(book.study, cleared, baseline)

        assert book.results == whole
        assert book.study == whole_study
        assert book.n_counted == sum(map(counts_as_trial, book.results))
        assert sum(book.counts().values()) == len(book.results)


def test_what_a_further_trial_leaves_as_it_was_stays_the_same_object() -> None:
    rng, book = random.Random(0), Book(study(2))
    for number, speed in enumerate((50.0, 60.0, 10.0)):
        enter(book, number, Measured(measures={"speed": speed, "size": 5.0 + number}), random.Random(1))
    before = list(book.results)
    enter(book, 3, Measured(measures={"speed": 1.0, "size": 70.0}), rng)

    assert all(old is new for old, new in zip(before, book.results, strict=False))


def test_set_ups_that_are_known_are_those_of_their_first_trial_and_ones_own_to_keep() -> None:
    book = Book(study(2))
    for number in range(3):
        record = TrialRecord(outcome=Measured(measures={"speed": 1.0, "size": 1.0}), effective_hash="same")
        book.enter(Asked(number=number, is_baseline=number == 0), Ended(record=record, folder=Path()))
    book.known_set_ups["other"] = 7

    assert book.known_set_ups == {"same": 0}
