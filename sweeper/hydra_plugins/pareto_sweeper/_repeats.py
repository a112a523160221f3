"""Measuring again: every set-up at random later times, and at the end those on the front.

One run says little of a machine that is warm or cold, busy or idle at the time.  Runs of one set-up at
different times say more, and runs in shuffled order keep what drifts with time from favouring anybody.
A repeat is no trial: it does not count, the sampler does not hear of it, and Optuna's storage does not
hold it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial

from hydra.core.override_parser.types import Quote, QuotedString

from memsweep.record.comparable import differences
from memsweep.record.outcome import Measured, NotInForce, Outcome
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.study.book import Book, Ended
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress
from memsweep.study.stop import Stop

from ._launches import Job
from ._settings import SweepSettings
from ._underway import Task, Underway

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
        underway: Underway,
        files: StudyFiles,
        progress: Progress,
        late: Callable[[], Stop | None],
    ) -> None:
        """Owe nothing.

        Args:
            settings: How many.
            book: The trials.
            underway: Has them run, beside trials where there is room.
            files: Writes the study's files.
            progress: What is told meanwhile.
            late: Says why there is no time for a further run; None when there is.
        """
        self._settings, self._book, self._underway = settings, book, underway
        self._files, self._progress = files, progress
        self._late = late
        self._rng = random.Random(f"{settings.seed} repeats")  # not the sampler's: trials stay the same
        self._owed: list[int] = []

    def owe(self, result: TrialResult) -> None:
        """Take note of a finished trial: one that was measured is measured again later."""
        if isinstance(result.outcome, Measured):
            self._owed += [result.number] * (self._settings.repeats - 1)

    @property
    def n_ahead(self) -> int:
        """How many repeats are to come, those of the next trial and of the front as it is now with them."""
        again = {result.number for result in self._book.front} | {self._book.measured_baseline}
        n_front = len(again - {None}) if self._book.front else 0
        return len(self._owed) + self._settings.repeats - 1 + self._settings.front_repeats * n_front

    def start_next(self, n_left: int) -> bool:
        """Start a repeat if one comes before the next trial, and tell whether one was started.

        What is owed and what is left lie in one urn, from which is drawn: so a repeat is as likely to be
        anywhere later in the study.

        Args:
            n_left: Trials to come.
        """
        owed = self._startable()
        if not owed or self._rng.random() >= len(owed) / (len(owed) + max(n_left, 0)):
            return False
        self._start_owed(owed)
        return True

    def rest(self) -> None:
        """Run all that is still owed, as far as there is time."""
        while self._owed and self._has_time():
            owed = self._startable()
            if owed and self._underway.n_free:
                self._start_owed(owed)
            else:
                self._underway.wait()
        self._underway.drain()

    def front(self) -> None:
        """Measure the set-ups on the front again, the baseline too, and those that come onto it thereby.

        The baseline, because every other set-up is shown as a multiple of it.
        """
        done: set[int] = set()
        for _ in range(1 + NEWCOMERS if self._settings.front_repeats else 0):
            front, baseline = [result.number for result in self._book.front], self._book.measured_baseline
            wanted = dict.fromkeys([*front, baseline] if front else [])
            members = [number for number in wanted if number is not None and number not in done]
            has_time = bool(members) and self._rounds(members)
            self._underway.drain()
            if not has_time:
                return
            done.update(members)

    def _has_time(self) -> bool:
        """Tell whether a further run may begin, and say why not."""
        stopped = self._late()
        if stopped is not None:
            self._progress.note(f"not everything is measured again: {stopped.why}")
        return stopped is None

    def _rounds(self, members: Sequence[int]) -> bool:
        """Measure each of `members` again, once a round, each round in an order of its own.

        Returns:
            Whether there was time for all.
        """
        total, step = self._settings.front_repeats * len(members), 0
        for _ in range(self._settings.front_repeats):
            for number in self._rng.sample(members, len(members)):
                if not self._has_time():
                    return False
                while number in self._underway or not self._underway.n_free:
                    self._underway.wait()
                step += 1
                self._start(number, f"measuring the front again ({step} of {total})")
        return True

    def _startable(self) -> list[int]:
        """Return what is owed, but for those that are being measured: their runs are told apart by order."""
        return [number for number in self._owed if number not in self._underway]

    def _start_owed(self, owed: Sequence[int]) -> None:
        number = owed[self._rng.randrange(len(owed))]
        self._owed.remove(number)
        n_done = len(self._book[number].repeats) + 2
        self._start(number, f"measuring again ({n_done} of {self._settings.repeats})")

    def _start(self, number: int, why: str) -> None:
        result = self._book[number]
        task = Task(
            job=self._job(result),
            label=f"{why}: trial {number} {result.label}",
            enter=partial(self._enter, number, why),
        )
        # Nothing is known to it: what has been measured is what it is to measure.
        self._underway.start([task], known={})

    def _job(self, result: TrialResult) -> Job:
        """Return a trial's job once more: the same number and overrides, in a folder inside the trial's."""
        own = self._book.ended[result.number].folder
        folder = own / "repeats" / str(len(result.repeats) + 1)
        subdir = os.path.relpath(folder, self._settings.folder.path)
        pinned = QuotedString(text=subdir, quote=Quote.single).with_quotes()
        overrides = (*result.overrides, f"hydra.sweep.subdir={pinned}")
        return Job(number=result.number, overrides=overrides, folder=folder)

    def _enter(self, number: int, why: str, ended: Ended) -> None:
        outcome = of_the_same(ended.record, self._book[number])
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
