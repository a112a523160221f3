"""The loop: ask, is it legal and new, launch, tell, write; at its end, measure the front again.

One trial, or `n_jobs` of them, is with the launcher at a time.  What is known of a trial is kept from the
moment it is asked for to the moment it is entered, so that several may be under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hydra.plugins.launcher import Launcher

from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Incompatible, Interrupted, Outcome, Reused
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.search.ask import Asker, Proposal
from memsweep.search.mirror import Mirror
from memsweep.search.tell import is_failure, told
from memsweep.study.book import Asked, Book, Ended, reused
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress
from memsweep.study.publish import Publisher

from ._interrupts import Interrupts
from ._launches import Job, Launches
from ._repeats import Repeats
from ._returns import interrupted_record, keep, outcome_of_error
from ._settings import SweepSettings

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
        first: Sequence[Proposal],
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
            first: Trials that come before the sampler's own, the baseline first.
            interrupts: Keeps Ctrl-C from splitting what belongs together.
            folder_of_number: The folder of a trial that is not launched.
            validate: Composes a trial's config, and raises if that fails.
        """
        self.book = book
        self.launches = Launches(launcher, are_named=settings.are_named)
        self._settings, self._asker, self._launcher = settings, asker, launcher
        self._files, self._mirror, self._publisher, self._progress = files, mirror, publisher, progress
        self._queue = deque(first)
        self._interrupts = interrupts
        self._folder_of_number, self._validate = folder_of_number, validate
        self._repeats = Repeats(
            settings=settings,
            book=book,
            launches=self.launches,
            files=files,
            progress=progress,
            interrupts=interrupts,
        )
        self._number = 0
        self._n_refused = 0

    def run(self) -> int:
        """Run the study and return its exit code: 0 a front was found, 1 none, 130 interrupted."""
        self._files.write(self.book)
        code = None
        try:
            with self._progress.shown():
                ended = self._loop()
                if not self._has_failed_too_often():
                    self._repeats.rest()
                    self._repeats.front()
        except KeyboardInterrupt:
            ended, code = "interrupted", 130
        finally:
            close = getattr(self._launcher, "close", None)
            if close is not None:
                close()
        if code is None:
            code = 0 if self.book.front and not self._has_failed_too_often() else 1
        self.book.study = replace(self.book.study, ended=ended)
        self._files.write(self.book)
        return code

    def _loop(self) -> str:
        """Run trials until there is a reason to stop, and return the reason."""
        while True:
            n_left = self._settings.n_trials - self.book.n_counted
            if n_left <= 0:
                return f"{self.book.n_counted} trials"
            if self._has_failed_too_often():
                return f"more than {self._settings.max_failure_rate:.0%} of the trials failed"
            if self._n_refused > self._settings.n_trials + _REFUSED:
                return f"{self._n_refused} configs could not be composed"
            self._repeats.before_next(n_left)
            batch = self._next_batch(min(self._settings.n_jobs, n_left))
            if not batch:
                return self._exhausted()
            self._launch(batch)

    def _next_batch(self, size: int) -> list[Proposal]:
        """Return up to `size` proposals that are legal and new; enter those that need no launch."""
        batch: list[Proposal] = []
        while len(batch) < size:
            if self._queue:
                proposal = self._queue.popleft()
            else:
                proposed = self._asker.propose(self.book.worst)
                if proposed is None:
                    break
                proposal = proposed
            verdict = proposal.verdict
            same = self.book.same_request(verdict.requested_hash) if not verdict.violations else None
            if verdict.violations:
                self._enter_unlaunched(proposal, Incompatible(violations=verdict.violations))
            elif same is not None:
                self._enter_unlaunched(proposal, reused(same.outcome, same.number), same)
            elif any(other.verdict.requested_hash == verdict.requested_hash for other in batch):
                self._queue.appendleft(proposal)  # once the other is measured, this one is too
                break
            elif size > 1 and not self._composes(proposal):
                continue
            else:
                batch.append(proposal)
        return batch

    def _composes(self, proposal: Proposal) -> bool:
        """Tell whether a proposal's config can be made: in a batch, one that cannot would take all down."""
        try:
            self._validate(proposal.overrides)
        except Exception as error:
            self._refuse(proposal, outcome_of_error(error))
            return False
        return True

    def _launch(self, batch: Sequence[Proposal]) -> None:
        first = self._number
        self._number += len(batch)
        labels = [f"trial {number} {_label(p)}" for number, p in enumerate(batch, start=first)]
        self._progress.begin(", ".join(labels))
        jobs = [
            Job(number=number, overrides=proposal.overrides, folder=self._folder_of_number(number))
            for number, proposal in enumerate(batch, start=first)
        ]
        try:
            ended = self.launches.run(jobs, self.book.study, self.book.known_set_ups)
        except KeyboardInterrupt:
            with self._interrupts.held():
                for proposal, job in zip(batch, jobs, strict=True):
                    record = interrupted_record(job.folder, self.book.study)
                    self._enter(proposal, job.number, Ended(record=record, folder=job.folder))
            raise
        with self._interrupts.held():
            for proposal, job, end in zip(batch, jobs, ended, strict=True):
                self._enter_ended(proposal, job.number, end)

    def _enter_ended(self, proposal: Proposal, number: int, ended: Ended) -> None:
        outcome, folder = ended.record.outcome, TrialFolder(ended.folder)
        if isinstance(outcome, Incompatible) and not self.book.results:
            # Not one config has been composed: what is wrong is wrong with all of them.
            raise ConfigError("\n".join(outcome.violations))
        self._n_refused += isinstance(outcome, Incompatible)
        if isinstance(outcome, Reused):  # its process knew the other trial's number, not its measures
            source = self.book[outcome.trial]
            record = replace(ended.record, outcome=reused(source.outcome, source.number))
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

    def _refuse(self, proposal: Proposal, outcome: Outcome) -> None:
        self._n_refused += 1
        self._enter_unlaunched(proposal, outcome)

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
        n_front = len(self.book.front)
        self._progress.end(result, self.book.study, self.book.counts(), self.book.n_counted, n_front)

    def _has_failed_too_often(self) -> bool:
        n_failed = sum(is_failure(result) for result in self.book.results)
        return n_failed > self._settings.max_failure_rate * self._settings.n_trials

    def _exhausted(self) -> str:
        listed = self._asker.legal.listed()
        if listed is None:
            return "no cell found that was not tried"
        return f"space exhausted ({len(listed) - (self._asker.n_left or 0)} of {len(listed)})"


def _label(proposal: Proposal) -> str:
    """Return a proposal in a few words, as its result will say it."""
    options = [f"{k}={v}" for k, v in proposal.verdict.choice.items() if v != "baseline"]
    others = [
        f"{key.rsplit('.', 1)[-1]}={label}"
        for key, label in proposal.parameters.items()
        if not key.startswith("technique/")
    ]
    return " ".join(options + others) or "baseline"
