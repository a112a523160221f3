"""Measuring again: every set-up at random later times, and at the end those on the front.

One run says little of a machine that is warm or cold, busy or idle at the time.  Runs of one set-up at
different times say more, and runs in shuffled order keep what drifts with time from favouring anybody.
A repeat is no trial: it does not count, the sampler does not hear of it, and Optuna's storage does not
hold it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from hydra.core.override_parser.types import Quote, QuotedString

from memsweep.record.comparable import differences
from memsweep.record.outcome import Measured, NotInForce, Outcome
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.study.book import Book
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress

from ._interrupts import Interrupts
from ._launches import Job, Launches
from ._returns import interrupted_record
from ._settings import SweepSettings

NEWCOMERS = 2
"""How often trials that come onto the front by its repeats are measured again as well.

Each time may bring others: somewhere it must end, and a front moves less each time.
"""


class Repeats:
    """The runs of a study beyond its trials."""

    def __init__(
        self,
        *,
        settings: SweepSettings,
        book: Book,
        launches: Launches,
        files: StudyFiles,
        progress: Progress,
        interrupts: Interrupts,
    ) -> None:
        """Owe nothing.

        Args:
            settings: How many.
            book: The trials.
            launches: Runs them.
            files: Writes the study's files.
            progress: What is told meanwhile.
            interrupts: Keeps Ctrl-C from splitting what belongs together.
        """
        self._settings, self._book, self._launches = settings, book, launches
        self._files, self._progress, self._interrupts = files, progress, interrupts
        self._rng = random.Random(f"{settings.seed} repeats")  # not the sampler's: trials stay the same
        self._owed: list[int] = []

    def owe(self, result: TrialResult) -> None:
        """Take note of a finished trial: one that was measured is measured again later."""
        if isinstance(result.outcome, Measured):
            self._owed += [result.number] * (self._settings.repeats - 1)

    def before_next(self, n_left: int) -> None:
        """Run the repeats that come before the next trial.

        What is owed and what is left lie in one urn, from which is drawn: so a repeat is as likely to be
        anywhere later in the study.

        Args:
            n_left: Trials to come.
        """
        while self._owed and self._rng.random() < len(self._owed) / (len(self._owed) + n_left):
            self._run_owed()

    def rest(self) -> None:
        """Run all that is still owed."""
        while self._owed:
            self._run_owed()

    def front(self) -> None:
        """Measure the set-ups on the front again, the baseline too, and those that come onto it thereby.

        The baseline, because every other set-up is shown as a multiple of it.
        """
        done: set[int] = set()
        for _ in range(1 + NEWCOMERS if self._settings.front_repeats else 0):
            front, baseline = [result.number for result in self._book.front], self._book.measured_baseline
            wanted = dict.fromkeys([*front, baseline] if front else [])
            members = [number for number in wanted if number is not None and number not in done]
            if not members:
                return
            done.update(members)
            self._rounds(members)

    def _rounds(self, members: Sequence[int]) -> None:
        """Measure each of `members` again, once a round, each round in an order of its own."""
        total, step = self._settings.front_repeats * len(members), 0
        for _ in range(self._settings.front_repeats):
            for number in self._rng.sample(members, len(members)):
                step += 1
                self._run(number, f"measuring the front again ({step} of {total})")

    def _run_owed(self) -> None:
        number = self._owed.pop(self._rng.randrange(len(self._owed)))
        n_done = len(self._book[number].repeats) + 2
        self._run(number, f"measuring again ({n_done} of {self._settings.repeats})")

    def _run(self, number: int, why: str) -> None:
        result = self._book[number]
        job = self._job(result)
        self._progress.begin(f"{why}: trial {number} {result.label}")
        try:
            # Nothing is known to it: what has been measured is what it is to measure.
            (ended,) = self._launches.run([job], self._book.study, known={})
        except KeyboardInterrupt:
            with self._interrupts.held():
                self._enter(number, interrupted_record(job.folder, self._book.study), why)
            raise
        with self._interrupts.held():
            self._enter(number, ended.record, why)

    def _job(self, result: TrialResult) -> Job:
        """Return a trial's job once more: the same number and overrides, in a folder inside the trial's."""
        own = self._book.ended[result.number].folder
        folder = own / "repeats" / str(len(result.repeats) + 1)
        subdir = os.path.relpath(folder, self._settings.folder.path)
        pinned = QuotedString(text=subdir, quote=Quote.single).with_quotes()
        overrides = (*result.overrides, f"hydra.sweep.subdir={pinned}")
        return Job(number=result.number, overrides=overrides, folder=folder)

    def _enter(self, number: int, record: TrialRecord, why: str) -> None:
        outcome = of_the_same(record, self._book[number])
        result = self._book.enter_repeat(number, outcome)
        self._files.write(self._book)
        self._progress.again(result, outcome, why)


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
