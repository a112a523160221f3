"""Where a finished trial goes: book, sampler, files, storage, reports; and the number of the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from memsweep.errors import ConfigError, StudyExists
from memsweep.record.asked import Asked
from memsweep.record.folder import TrialFolder, writing
from memsweep.record.outcome import Crashed, Incompatible, Interrupted, Outcome
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.search.ask import Asker
from memsweep.search.mirror import Mirror
from memsweep.search.proposal import Proposal
from memsweep.search.tell import Told, told
from memsweep.study.book import Book, Ended
from memsweep.study.files import StudyFiles
from memsweep.study.progress import Progress
from memsweep.study.publish import Publisher
from memsweep.study.restore import with_twin

from ._interrupts import Interrupts
from ._proposals import Proposals
from ._repeats import Repeats
from ._returns import keep

FolderOf = Callable[[int, Sequence[str]], Path]
"""Takes the number and the overrides of a job, and knows its folder."""


class Entries:
    """Takes in how trials have ended.

    Attributes:
        number: Of the next trial.
        n_refused: Configs that could not be composed.
    """

    def __init__(
        self,
        *,
        asker: Asker,
        book: Book,
        proposals: Proposals,
        repeats: Repeats,
        files: StudyFiles,
        mirror: Mirror,
        publisher: Publisher,
        progress: Progress,
        interrupts: Interrupts,
        folder_of: FolderOf,
        elapsed_seconds: Callable[[], float],
    ) -> None:
        """Prepare, without entering anything.

        Args:
            asker: Hears how proposals have ended.
            book: The trials.
            proposals: Hears of every finished trial.
            repeats: Is owed those of every trial that is measured.
            files: Writes the study's files.
            mirror: The copy for Optuna's tools.
            publisher: Report and tracking.
            progress: What is told meanwhile.
            interrupts: Keeps Ctrl-C from splitting what belongs together.
            folder_of: Knows where a trial goes.
            elapsed_seconds: How long the study has been running, all its controllers together.
        """
        self.number = 0
        self.n_refused = 0
        self._asker, self._book, self._proposals, self._repeats = asker, book, proposals, repeats
        self._files, self._mirror, self._publisher, self._progress = files, mirror, publisher, progress
        self._interrupts = interrupts
        self._folder_of, self._elapsed_seconds = folder_of, elapsed_seconds

    def begun(self, proposal: Proposal, reused_from: int | None = None) -> tuple[Asked, TrialFolder]:
        """Give a proposal a number and a folder that says what it is asked to do, and return both.

        Args:
            proposal: The proposal.
            reused_from: The trial whose outcome it has without being run; None when it is run.

        Raises:
            StudyExists: If the folder holds how another trial has ended.
            StudyUnwritable: If the folder cannot be written.
        """
        asked = proposal.asked(self.number, self._elapsed_seconds(), reused_from)
        folder = TrialFolder(self._folder_of(asked.number, asked.overrides))
        _require_free(folder, asked.number)
        with writing(folder.path):
            asked.write(folder)
        self.number += 1
        return asked, folder

    def unlaunched(self, proposal: Proposal, outcome: Outcome, same: TrialResult | None = None) -> None:
        """Enter a trial that is known without running it.

        Args:
            proposal: What it asks for.
            outcome: What is known.
            same: The trial that has asked for the same; None for none.
        """
        record = TrialRecord(
            outcome=outcome,
            effective_hash=None if same is None else same.effective_hash,
            versions={} if same is None else same.versions,
        )
        reused_from = None if same is None else same.number
        with self._interrupts.held():
            asked, folder = self.begun(proposal, reused_from)
            keep(record, folder)
            self._enter(proposal, asked, Ended(record=record, folder=folder.path, reused_from=reused_from))

    def ended(self, proposal: Proposal, asked: Asked, ended: Ended) -> None:
        """Enter a trial that has been with the launcher."""
        if isinstance(ended.record.outcome, Interrupted):
            self._enter(proposal, asked, ended)
            return
        folder = TrialFolder(ended.folder)
        if isinstance(ended.record.outcome, Incompatible) and asked.number == 0:
            # Not one config has been composed: what is wrong is wrong with all of them.  The same command,
            # once that is mended, is to find no trial here.
            folder.asked.unlink(missing_ok=True)
            folder.outcome.unlink(missing_ok=True)
            raise ConfigError("\n".join(ended.record.outcome.violations))
        self.n_refused += isinstance(ended.record.outcome, Incompatible)
        record = with_twin(ended.record, self._book)
        if record is not ended.record or isinstance(record.outcome, Incompatible):
            keep(record, folder)
        self._enter(proposal, asked, replace(ended, record=record))

    def take_in(
        self, proposal: Proposal, asked: Asked, ended: Ended, *, is_again: bool = False
    ) -> tuple[TrialResult, Told]:
        """Enter a finished trial in the book, and tell everybody who proposes.

        Args:
            proposal: What it was.
            asked: What its folder says of that.
            ended: How it ended.
            is_again: The same is proposed once more: the sampler hears of that one's end instead.

        Returns:
            The trial, and what the sampler is told of it.
        """
        result = self._book.enter(asked, ended)
        if isinstance(result.outcome, Crashed | Interrupted):
            self._book.forget_request(result.requested_hash)  # another try might pass
        self._repeats.owe(result)
        sentence = told(result, self._book.study, self._book.worst)
        if is_again:
            self._proposals.again(proposal, asked.number)
        else:
            self._asker.tell(proposal, sentence)
        return result, sentence

    def _enter(self, proposal: Proposal, asked: Asked, ended: Ended) -> None:
        """Enter a finished trial everywhere."""
        result, sentence = self.take_in(proposal, asked, ended)
        self._files.write(self._book)
        self._mirror.add(result, sentence, proposal.inside)
        self._publisher.trial(result)
        said = self._proposals.hear(result)
        if said is not None:
            self._progress.note(said)
        n_front = len(self._book.front)
        self._progress.end(result, self._book.study, self._book.counts(), self._book.n_counted, n_front)


def _require_free(folder: TrialFolder, number: int) -> None:
    """Raise where a trial is to go into the folder of one that has ended, which would be lost.

    Raises:
        StudyExists: If so.
    """
    try:
        ended = TrialRecord.read(folder)
    except (OSError, ValueError):
        return
    if not isinstance(ended.outcome, Interrupted):
        raise StudyExists(
            f"trial {number} is to go into {folder.path}, which holds a trial that has ended; nothing is "
            "written over it.  hydra.sweep.subdir must give each trial a folder of its own; where that is "
            "so, the folder is none of this study: move it away, or begin another with "
            "hydra.sweeper.study_name=<name>"
        )
