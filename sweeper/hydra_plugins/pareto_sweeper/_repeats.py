"""Measuring again: every set-up at random later times, and at the end those on the front.

One run says little of a machine that is warm or cold, busy or idle at the time.  Runs of one set-up at
different times say more, and runs in shuffled order keep what drifts with time from favouring anybody.
A repeat is no trial: it does not count, the sampler does not hear of it, and Optuna's storage does not
hold it.

What is drawn follows from the seed and from how many runs there have been.  So a study that is continued
comes to the repeats that it has already in the order in which it ran them, and enters them as they come.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hydra.core.override_parser.types import Quote, QuotedString

from memsweep.record.folder import TrialFolder, writing
from memsweep.record.outcome import Measured
from memsweep.record.required import judged
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.study.book import Book, Ended
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress
from memsweep.study.restore import of_the_same
from memsweep.study.stop import Stop

from ._launches import Job
from ._settings import SweepSettings
from ._underway import Task, Underway

NEWCOMERS = 2
"""How often trials that come onto the front by its repeats are measured again as well.

Each time may bring others: somewhere it must end, and a front moves less each time.
"""

Done = Mapping[tuple[int, int], TrialRecord]
"""Trial and which of its repeats to how that ended."""


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
        done: Done,
    ) -> None:
        """Owe nothing.

        Args:
            settings: How many.
            book: The trials.
            underway: Has them run, beside trials where there is room.
            files: Writes the study's files.
            progress: What is told meanwhile.
            late: Says why there is no time for a further run; None when there is.
            done: Those that the study has from before.
        """
        self._settings, self._book, self._underway = settings, book, underway
        self._files, self._progress = files, progress
        self._late = late
        self._done = dict(done)
        self._owed: list[int] = []

    def owe(self, result: TrialResult) -> None:
        """Take note of a finished trial: one that was measured is measured again later."""
        if isinstance(result.outcome, Measured):
            self._owed += [result.number] * (self._settings.repeats - 1 - len(result.repeats))

    @property
    def n_ahead(self) -> int:
        """How many repeats are to come, those of the next trial and of the front as it is now with them."""
        again = {result.number for result in self._book.front} | {self._book.measured_baseline}
        n_front = len(again - {None}) if self._book.front else 0
        return len(self._owed) + self._settings.repeats - 1 + self._settings.front_repeats * n_front

    def start_next(self, n_left: int, *, only_done: bool = False) -> bool:
        """Start a repeat if one comes before the next trial, and tell whether one was started.

        What is owed and what is left lie in one urn, from which is drawn: so a repeat is as likely to be
        anywhere later in the study.

        Args:
            n_left: Trials to come.
            only_done: Start none that is not there from before.
        """
        owed = self._startable()
        rng = self._drawing("repeat")
        if not owed or rng.random() >= len(owed) / (len(owed) + max(n_left, 0)):
            return False
        number = owed[rng.randrange(len(owed))]
        if only_done and self._next_of(number) not in self._done:
            return False
        self._start_owed(number)
        return True

    def rest(self) -> None:
        """Run all that is still owed, as far as there is time."""
        while self._owed and self._has_time():
            owed = self._startable()
            if owed and self._underway.n_free:
                self._start_owed(owed[self._drawing("rest").randrange(len(owed))])
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

    def enter_done(self, number: int | None = None) -> None:
        """Enter what the study has from before of a trial's repeats, or of all: none of them is lost."""
        for trial, which in sorted(self._done):
            if number in (None, trial):
                self._take_in(trial, self._done.pop((trial, which)))
                if trial in self._owed:
                    self._owed.remove(trial)

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
        for n_rounds in range(self._settings.front_repeats):
            for number in self._drawing("front").sample(members, len(members)):
                step += 1
                if len(self._book[number].repeats) > self._settings.repeats - 1 + n_rounds:
                    continue  # a study that is continued has it already
                if not self._has_time():
                    return False
                while number in self._underway or not self._underway.n_free:
                    self._underway.wait()
                self._start(number, f"measuring the front again ({step} of {total})")
        return True

    def _drawing(self, what: str) -> random.Random:
        """Return what draws from here on; it is not the sampler's, so that trials stay the same."""
        return random.Random(f"{self._settings.seed} {what} {self._book.n_runs + len(self._underway)}")

    def _startable(self) -> list[int]:
        """Return what is owed, but for those that are being measured: their runs are told apart by order."""
        return [number for number in self._owed if number not in self._underway]

    def _start_owed(self, number: int) -> None:
        self._owed.remove(number)
        n_done = len(self._book[number].repeats) + 2
        self._start(number, f"measuring again ({n_done} of {self._settings.repeats})")

    def _next_of(self, number: int) -> tuple[int, int]:
        return number, len(self._book[number].repeats) + 1

    def _start(self, number: int, why: str) -> None:
        done = self._done.pop(self._next_of(number), None)
        if done is not None:
            self._take_in(number, done)
            return
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
        own = TrialFolder(self._book.ended[result.number].folder)
        folder = own.repeat(len(result.repeats) + 1).path
        subdir = os.path.relpath(folder, self._settings.folder.path)
        with writing(folder):
            TrialFolder(folder).outcome.unlink(missing_ok=True)  # of one that was interrupted
        pinned = QuotedString(text=subdir, quote=Quote.single).with_quotes()
        overrides = (*result.overrides, f"hydra.sweep.subdir={pinned}")
        return Job(number=result.number, overrides=overrides, folder=folder)

    def _enter(self, number: int, why: str, ended: Ended) -> None:
        result = self._take_in(number, ended.record)
        self._files.write(self._book)
        self._progress.again(result, result.repeats[-1], why)

    def _take_in(self, number: int, record: TrialRecord) -> TrialResult:
        record = replace(record, outcome=judged(record.outcome, self._book.study))
        return self._book.enter_repeat(number, of_the_same(record, self._book[number]))
