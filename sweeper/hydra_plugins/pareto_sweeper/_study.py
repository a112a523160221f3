"""The loop: ask, is it legal and new, launch, tell, write; at its end, measure the front again.

As many trials are with the launcher as it takes at a time: one, one for each of its slots, or a batch of
`n_jobs`.  What is known of a trial is kept from the moment it is asked for to the moment it is entered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hydra.plugins.launcher import Launcher

from memsweep.record.asked import Asked
from memsweep.record.outcome import Incompatible
from memsweep.record.rivals import Rivals
from memsweep.record.study import INTERRUPTED
from memsweep.search.ask import Asker
from memsweep.search.mirror import Mirror
from memsweep.search.proposal import Proposal
from memsweep.study.book import Book, Ended, reused
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress
from memsweep.study.publish import Publisher
from memsweep.study.rivals import rivals
from memsweep.study.stop import Spent, Stop, failure, out_of_time, seconds_a_run, stop

from ._entries import Entries, FolderOf
from ._interrupts import Interrupts
from ._launches import Job, Launches
from ._proposals import Proposals, label
from ._repeats import Repeats
from ._restored import Restored
from ._resume import Start
from ._returns import outcome_of_error
from ._settings import SweepSettings
from ._underway import Task, Underway

_REFUSED = 50
"""Configs that may fail to compose, beyond the number of trials, before the study gives up."""


class StudyRun:
    """One study, from its first trial, or the first that is missing, to its last.

    Attributes:
        book: The trials so far.
        launches: What the launcher was given, and gave back.
    """

    def __init__(
        self,
        *,
        settings: SweepSettings,
        start: Start,
        asker: Asker,
        book: Book,
        launcher: Launcher,
        files: StudyFiles,
        mirror: Mirror,
        publisher: Publisher,
        progress: Progress,
        proposals: Proposals,
        interrupts: Interrupts,
        folder_of: FolderOf,
        validate: Callable[[Sequence[str]], object],
    ) -> None:
        """Prepare, without running anything.

        Args:
            settings: What was asked for.
            start: Where the study begins.
            asker: Proposes trials.
            book: Empty.
            launcher: Any of Hydra's.
            files: Writes the study's files.
            mirror: The copy for Optuna's tools.
            publisher: Report and tracking.
            progress: What is told meanwhile.
            proposals: What to try, the baseline first.
            interrupts: Keeps Ctrl-C from splitting what belongs together.
            folder_of: Knows where a trial goes.
            validate: Composes a trial's config, and raises if that fails.
        """
        self.book = book
        self.launches = Launches(launcher, are_named=settings.are_named, n_jobs=settings.n_jobs)
        self.launches.device_seconds = start.past.device_seconds
        self._settings, self._start, self._asker = settings, start, asker
        self._launcher, self._files, self._mirror = launcher, files, mirror
        self._publisher = publisher
        self._progress, self._proposals = progress, proposals
        self._validate, self._interrupts = validate, interrupts
        self._underway = Underway(self.launches, book, progress, interrupts)
        self._running: dict[int, Proposal] = {}
        self._began = time.monotonic() - start.past.elapsed_seconds
        self._repeats = Repeats(
            settings=settings,
            book=book,
            underway=self._underway,
            files=files,
            progress=progress,
            late=lambda: out_of_time(settings.stop, book.results, self._spent(0)),
            done={
                (trial.asked.number, which): record
                for trial in start.past.trials
                for which, record in trial.repeats.items()
            },
        )
        self._entries = Entries(
            asker=asker,
            book=book,
            proposals=proposals,
            repeats=self._repeats,
            files=files,
            mirror=mirror,
            publisher=publisher,
            progress=progress,
            interrupts=interrupts,
            folder_of=folder_of,
            elapsed_seconds=lambda: time.monotonic() - self._began,
        )

    def run(self) -> int:
        """Run the study and return its exit code: 0 a front was found, 1 none, 130 interrupted.

        Raises:
            StudyUnwritable: If the study's folder cannot be written any more.
        """
        code = None
        try:
            self._restore()
            with self._progress.shown():
                stopped = self._loop()
                if not stopped.has_failed:
                    self._repeats.rest()
                    self._repeats.front()
                self._underway.drain()
        except KeyboardInterrupt:
            stopped, code = Stop(INTERRUPTED), 130
            with suppress(KeyboardInterrupt):  # once more: it is ending already
                self._underway.interrupt()
        finally:
            self.launches.interrupt()  # after an error of our own nothing is to go on
            close = getattr(self._launcher, "close", None)
            if close is not None:
                close()
        self._repeats.enter_done()
        if code is None:
            code = 0 if self.book.front and not stopped.has_failed else 1
        self.book.study = replace(self.book.study, ended=stopped.why)
        self._files.write(self.book)
        return code

    def _restore(self) -> None:
        """Enter the trials of before, and bring every file to what they say."""
        restored = Restored(
            self._start,
            folder=self._settings.folder,
            asker=self._asker,
            book=self.book,
            proposals=self._proposals,
            repeats=self._repeats,
            entries=self._entries,
            is_single=self.launches.n_slots == 1 and not self.launches.is_batched,
        )
        with self._interrupts.held():  # half of them in the files would be worse than none
            rows = list(restored.enter())
            self._files.write(self.book)
        self._mirror.catch_up(rows)
        self._publisher.goes_on(self.book.results)
        self._progress.goes_on(self.book.n_counted, self.book.counts(), len(self.book.front))

    def _loop(self) -> Stop:
        """Run trials until there is a reason to stop and none is under way, and return the reason."""
        while True:
            stopped = self._start_next()
            if stopped is not None and not self._running:
                return stopped
            self._underway.wait()

    def _start_next(self) -> Stop | None:
        """Start what there is room for; return why nothing further is to begin, None when it may be."""
        while self._underway.n_free:
            stopped = self._stopped()
            if stopped is not None:
                return stopped
            n_left = self._settings.n_trials - self.book.n_counted - len(self._running)
            if self._repeats.start_next(n_left):
                continue
            if n_left <= 0:
                return None  # unless one of those under way turns out not to count
            batch = self._next_batch(min(self._underway.n_free, n_left), n_left)
            if not batch:
                return failure(self._settings.stop, self.book.results) or Stop(self._proposals.exhausted())
            self._launch(batch)
        return None

    def _stopped(self) -> Stop | None:
        """Return why no further trial is to begin; None when one is."""
        if self._entries.n_refused > self._settings.n_trials + _REFUSED:
            return Stop(f"{self._entries.n_refused} configs could not be composed")
        spent = self._spent(self._repeats.n_ahead)
        return stop(self._settings.stop, self.book.study, self.book.results, spent)

    def _spent(self, n_ahead: int) -> Spent:
        """Return what the study has taken, with so many runs to come for what has been measured."""
        known = seconds_a_run(self.book.results) if self._settings.stop.limit_time else None
        each = known or 0.0
        return Spent(
            wall_seconds=time.monotonic() - self._began,
            device_seconds=self.launches.device_seconds + len(self._underway) * each,
            ahead_seconds=n_ahead * each,
            n_slots=self.launches.n_slots,
        )

    def _next_batch(self, size: int, n_left: int) -> list[Proposal]:
        """Return up to `size` of `n_left` proposals, legal and new; enter those that need no launch."""
        batch: list[Proposal] = []
        while len(batch) < size:
            busy = {other.verdict.requested_hash for other in (*self._running.values(), *batch)}
            proposal = self._proposals.next(busy, n_left - len(batch))
            if proposal is None:
                break
            verdict = proposal.verdict
            same = self.book.same_request(verdict.requested_hash) if not verdict.violations else None
            if verdict.violations:
                self._entries.unlaunched(proposal, Incompatible(violations=verdict.violations))
            elif same is not None:
                self._entries.unlaunched(proposal, reused(same.outcome, same.number), same)
            elif self.launches.is_batched and not self._composes(proposal):
                continue
            else:
                batch.append(proposal)
        return batch

    def _composes(self, proposal: Proposal) -> bool:
        """Tell whether a proposal's config can be made: in a batch, one that cannot would take all down."""
        try:
            self._validate(proposal.overrides)
        except Exception as error:
            self._entries.n_refused += 1
            self._entries.unlaunched(proposal, outcome_of_error(error))
            return False
        return True

    def _launch(self, batch: Sequence[Proposal]) -> None:
        tasks = []
        for proposal in batch:
            asked, folder = self._entries.begun(proposal)
            job = Job(
                number=asked.number,
                overrides=asked.overrides,
                folder=folder.path,
                asked=asked,
                rivals=self._rivals(proposal),
            )
            self._running[asked.number] = proposal
            name = f"trial {asked.number} {label(proposal)}"
            tasks.append(Task(job=job, label=name, enter=partial(self._end, asked)))
        self._underway.start(tasks, self.book.known_set_ups)

    def _end(self, asked: Asked, ended: Ended) -> None:
        """Take in how a trial under way has ended."""
        self._entries.ended(self._running.pop(asked.number), asked, ended)

    def _rivals(self, proposal: Proposal) -> Rivals | None:
        """Return what a trial is held against; None for the baseline, which every other is compared with."""
        if proposal.is_baseline or not self._settings.cut_short:
            return None
        return rivals(self.book.study, self.book.results, proposal.verdict.changes)
