"""From what trial folders hold to trials as a book enters them, whether they ended just now or long ago.

What a trial wrote is the truth about its run.  What it means for its study follows anew each time: whether
every objective is among what was measured, and whether another trial had the same set-up in force.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memsweep.record.asked import Asked
from memsweep.record.comparable import differences
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Measured, NotInForce, Outcome, to_mapping
from memsweep.record.past import Past, PastTrial
from memsweep.record.required import judged
from memsweep.record.trial import RETURNED, TrialRecord, TrialResult, read_results
from memsweep.search.mirror import Row
from memsweep.search.tell import told
from memsweep.study.book import Book, Ended, reused

OWN_MEASURES = "own_measures"
"""Among a record's facts: what a trial measured itself whose set-up another had measured before."""


def with_twin(record: TrialRecord, book: Book) -> TrialRecord:
    """Return a record as reused where another trial's set-up turned out to be its own.

    What it has measured itself is kept among its facts, and counts for nothing.

    Args:
        record: Of a trial that is about to be entered.
        book: The trials before it.
    """
    twin = book.twin(record)
    if twin is None:
        return record
    outcome = record.outcome
    facts = dict(record.facts)
    if isinstance(outcome, Measured):
        facts[OWN_MEASURES] = dict(outcome.measures)
    return replace(record, outcome=reused(twin.outcome, twin.number), facts=facts)


def of_the_same(record: TrialRecord, result: TrialResult) -> Outcome:
    """Return how a repeat ended; not as measured where it measured something else than its trial did.

    Args:
        record: The repeat's.
        result: Its trial.
    """
    if not isinstance(record.outcome, Measured):
        return record.outcome
    whose = f"trial {result.number}"
    found = differences(record.conditions, result.conditions, whose)
    found += differences(record.versions, result.versions, whose)
    own, others = record.effective_hash, result.effective_hash
    if own is not None and others is not None and own != others:
        found += (f"other settings in force than in {whose}: {own}, not {others} (effective.json of both)",)
    return NotInForce(differences=found) if found else record.outcome


def ended_of(trial: PastTrial, book: Book) -> Ended:
    """Return how a past trial ended, as it is to be entered next.

    Args:
        trial: One that has ended.
        book: The trials before it.
    """
    assert trial.record is not None
    own = trial.record
    record = with_twin(replace(own, outcome=judged(own.outcome, book.study)), book)
    returned: Any = own.facts.get(RETURNED)
    if RETURNED not in own.facts and isinstance(own.outcome, Measured):
        returned = json.loads(
            json.dumps(to_mapping(own.outcome), sort_keys=True)
        )  # which is what a trial of ours returns
    reused_from = trial.asked.reused_from
    return Ended(record=record, folder=trial.folder.path, returned=returned, reused_from=reused_from)


def in_order(past: Past, folder: StudyFolder) -> list[PastTrial]:
    """Return the trials in the order in which they finished, as far as that can be known, else by number."""
    try:
        told_of = [result.number for result in read_results(folder.results)]
    except (OSError, ValueError, KeyError, TypeError):
        told_of = []
    places = {number: place for place, number in enumerate(told_of)}
    return sorted(
        past.trials, key=lambda trial: (places.get(trial.asked.number, len(places)), trial.asked.number)
    )


def enter_all(trials: Sequence[PastTrial], book: Book) -> Iterator[Row]:
    """Enter past trials and their repeats in a book, and yield each as the copy for Optuna has it.

    Args:
        trials: In the order in which they finished; those that did not are left out.
        book: Empty.
    """
    for trial in trials:
        if trial.record is None:
            continue
        result = enter_one(trial, book)
        yield Row(result, told(result, book.study, book.worst), trial.asked.inside)
        enter_repeats(trial, book)


def enter_one(trial: PastTrial, book: Book, asked: Asked | None = None) -> TrialResult:
    """Enter a past trial that has ended, without its repeats.

    Args:
        trial: The trial.
        book: The trials before it.
        asked: What it was asked to do, where that is to be said otherwise than its folder does.
    """
    return book.enter(trial.asked if asked is None else asked, ended_of(trial, book))


def enter_repeats(trial: PastTrial, book: Book) -> None:
    """Enter the repeats of a trial that has been entered."""
    for record in trial.repeats.values():
        record = replace(record, outcome=judged(record.outcome, book.study))
        book.enter_repeat(trial.asked.number, of_the_same(record, book[trial.asked.number]))
