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
from pathlib import Path

from hydra.plugins.launcher import Launcher

from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Incompatible, Interrupted, Measured, Outcome
from memsweep.record.rivals import Rivals
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.search.ask import Asker, Proposal
from memsweep.search.mirror import Mirror
from memsweep.search.tell import told
from memsweep.study.book import Asked, Book, Ended, reused
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress
from memsweep.study.publish import Publisher
from memsweep.study.rivals import rivals
from memsweep.study.stop import Spent, Stop, failure, out_of_time, seconds_a_run, stop

from ._interrupts import Interrupts
from ._launches import Job, Launches
from ._proposals import Proposals, label
from ._repeats import Repeats
from ._returns import keep, outcome_of_error
from ._settings import SweepSettings
from ._underway import Task, Underway

_REFUSED = 50
"""Configs that may fail to compose, beyond the number of trials, before the study gives up."""


class StudyRun:
    """One study, from its first trial to its last.

    Attributes:
        book: The trials so far.
        launches: What the launcher was given, and gave back.
    """

    def __init__(
        self,
        *,
        settings: SweepSettings,
        asker: Asker,
        book: Book,
        launcher: Launcher,
        files: StudyFiles,
        mirror: Mirror,
        publisher: Publisher,
        progress: Progress,
        proposals: Proposals,
        interrupts: Interrupts,
        folder_of_number: Callable[[int], Path],
        validate: Callable[[Sequence[str]], None],
    ) -> None:
        """Prepare, without running anything.

        Args:
            settings: What was asked for.
            asker: Proposes trials.
            book: Empty.
            launcher: Any of Hydra's.
            files: Writes the study's files.
            mirror: The copy for Optuna's tools.
            publisher: Report and tracking.
            progress: What is told meanwhile.
            proposals: What to try, the baseline first.
            interrupts: Keeps Ctrl-C from splitting what belongs together.
            folder_of_number: The folder of a trial that is not launched.
            validate: Composes a trial's config, and raises if that fails.
        """
        self.book = book
        self.launches = Launches(launcher, are_named=settings.are_named, n_jobs=settings.n_jobs)
        self._settings, self._asker, self._launcher = settings, asker, launcher
        self._files, self._mirror, self._publisher, self._progress = files, mirror, publisher, progress
        self._proposals = proposals
        self._interrupts = interrupts
        self._folder_of_number, self._validate = folder_of_number, validate
        self._underway = Underway(self.launches, book, progress, interrupts)
        self._running: dict[int, Proposal] = {}
        self._repeats = Repeats(
            settings=settings,
            book=book,
            underway=self._underway,
            files=files,
            progress=progress,
            late=lambda: out_of_time(settings.stop, book.results, self._spent(0)),
        )
        self._began = time.monotonic()
        self._number = 0
        self._n_refused = 0

    def run(self) -> int:
        """Run the study and return its exit code: 0 a front was found, 1 none, 130 interrupted."""
        self._files.write(self.book)
        code = None
        try:
            with self._progress.shown():
                stopped = self._loop()
                if not stopped.has_failed:
                    self._repeats.rest()
                    self._repeats.front()
                self._underway.drain()
        except KeyboardInterrupt:
            stopped, code = Stop("interrupted"), 130
            with suppress(KeyboardInterrupt):  # once more: it is ending already
                self._underway.interrupt()
        finally:
            self.launches.interrupt()  # after an error of our own nothing is to go on
            close = getattr(self._launcher, "close", None)
            if close is not None:
                close()
        if code is None:
            code = 0 if self.book.front and not stopped.has_failed else 1
        self.book.study = replace(self.book.study, ended=stopped.why)
        self._files.write(self.book)
        return code

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
        if self._n_refused > self._settings.n_trials + _REFUSED:
            return Stop(f"{self._n_refused} configs could not be composed")
        spent = self._spent(self._repeats.n_ahead)
        return stop(self._settings.stop, self.book.study, self.book.results, spent)

    def _spent(self, n_ahead: int) -> Spent:
        """Return what the study has taken, with so many runs to come for what has been measured."""
        each = seconds_a_run(self.book.results) or 0.0
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
                self._enter_unlaunched(proposal, Incompatible(violations=verdict.violations))
            elif same is not None:
                self._enter_unlaunched(proposal, reused(same.outcome, same.number), same)
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
            self._n_refused += 1
            self._enter_unlaunched(proposal, outcome_of_error(error))
            return False
        return True

    def _launch(self, batch: Sequence[Proposal]) -> None:
        first = self._number
        self._number += len(batch)
        jobs = [
            Job(
                number=number,
                overrides=proposal.overrides,
                folder=self._folder_of_number(number),
                rivals=self._rivals(proposal),
            )
            for number, proposal in enumerate(batch, start=first)
        ]
        self._running.update(zip((job.number for job in jobs), batch, strict=True))
        self._underway.start(
            [
                Task(
                    job=job,
                    label=f"trial {job.number} {label(proposal)}",
                    enter=partial(self._end, job.number),
                )
                for job, proposal in zip(jobs, batch, strict=True)
            ],
            self.book.known_set_ups,
        )

    def _end(self, number: int, ended: Ended) -> None:
        """Take in how a trial under way has ended."""
        proposal = self._running.pop(number)
        if isinstance(ended.record.outcome, Interrupted):
            self._enter(proposal, number, ended)
        else:
            self._enter_ended(proposal, number, ended)

    def _rivals(self, proposal: Proposal) -> Rivals | None:
        """Return what a trial is held against; None for the baseline, which every other is compared with."""
        if proposal.is_baseline or not self._settings.cut_short:
            return None
        return rivals(self.book.study, self.book.results, proposal.verdict.changes)

    def _enter_ended(self, proposal: Proposal, number: int, ended: Ended) -> None:
        outcome, folder = ended.record.outcome, TrialFolder(ended.folder)
        if isinstance(outcome, Incompatible) and number == 0:
            # Not one config has been composed: what is wrong is wrong with all of them.
            raise ConfigError("\n".join(outcome.violations))
        self._n_refused += isinstance(outcome, Incompatible)
        twin = self.book.twin(ended.record)
        if twin is not None:
            record = replace(ended.record, outcome=reused(twin.outcome, twin.number))
            if isinstance(outcome, Measured):  # what it has measured itself is kept, and counts for nothing
                record = replace(record, facts={**record.facts, "own_measures": dict(outcome.measures)})
            record.write(folder)
            ended = replace(ended, record=record)
        keep(ended.record, folder)
        self._enter(proposal, number, ended)

    def _enter_unlaunched(
        self, proposal: Proposal, outcome: Outcome, same: TrialResult | None = None
    ) -> None:
        """Enter a trial that is known without running it."""
        number = self._number
        self._number += 1
        folder = TrialFolder(self._folder_of_number(number))
        record = TrialRecord(
            outcome=outcome,
            effective_hash=None if same is None else same.effective_hash,
            versions={} if same is None else same.versions,
        )
        reused_from = None if same is None else same.number
        with self._interrupts.held():
            keep(record, folder)
            self._enter(proposal, number, Ended(record=record, folder=folder.path, reused_from=reused_from))

    def _enter(self, proposal: Proposal, number: int, ended: Ended) -> None:
        """Enter a finished trial everywhere: book, sampler, files, storage, reports."""
        asked = Asked(
            number=number,
            parameters=proposal.parameters,
            overrides=proposal.overrides,
            verdict=proposal.verdict,
            inside=proposal.inside,
            is_baseline=proposal.is_baseline,
        )
        result = self.book.enter(asked, ended)
        if isinstance(result.outcome, Crashed | Interrupted):
            self.book.forget_request(result.requested_hash)  # another try might pass
        self._files.write(self.book)
        self._repeats.owe(result)
        sentence = told(result, self.book.study, self.book.worst)
        self._asker.tell(proposal, sentence)
        self._mirror.add(result, sentence, proposal.inside, self._asker.space.parameters)
        self._publisher.trial(result)
        said = self._proposals.hear(result)
        if said is not None:
            self._progress.note(said)
        n_front = len(self.book.front)
        self._progress.end(result, self.book.study, self.book.counts(), self.book.n_counted, n_front)
