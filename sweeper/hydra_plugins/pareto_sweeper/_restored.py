"""Bringing book, sampler and proposals to where they were when the study's last controller ended.

Each trial of before is entered as it was then.  Where the sampler had proposed it, the sampler is asked
again: it draws the same (`ask.py`), and so comes to know and to believe what it did.  What it had asked for
stands, should it come to something else now, because the space has grown, say; from there on it is only told.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from memsweep.errors import OtherStudy
from memsweep.record.asked import Asked, Origin
from memsweep.record.folder import StudyFolder, writing
from memsweep.record.outcome import Incompatible, Interrupted, Reused
from memsweep.record.past import PastTrial
from memsweep.record.study import Study
from memsweep.record.trial import TrialRecord
from memsweep.search.ask import Asker
from memsweep.search.mirror import Row
from memsweep.search.proposal import Proposal
from memsweep.search.space import GROUP, Cell
from memsweep.study.book import Book
from memsweep.study.fingerprint import label_before
from memsweep.study.restore import ended_of, in_order

from ._entries import Entries
from ._proposals import Proposals
from ._repeats import Repeats
from ._resume import Start, is_finished

log = logging.getLogger(__name__)

LOST = "its controller ended before it did"
"""Why a trial is interrupted that was under way when its controller was killed."""


class Restored:
    """The trials of before, on their way into a study that goes on."""

    def __init__(
        self,
        start: Start,
        *,
        folder: StudyFolder,
        asker: Asker,
        book: Book,
        proposals: Proposals,
        repeats: Repeats,
        entries: Entries,
        is_single: bool,
    ) -> None:
        """Prepare, without entering anything.

        Args:
            start: Where the study begins.
            folder: Its folder.
            asker: Proposes trials.
            book: Empty.
            proposals: What to try.
            repeats: Holds the repeats of before.
            entries: Enters trials.
            is_single: Trials run one at a time, so that what was drawn can be drawn again.
        """
        self._start, self._folder = start, folder
        self._asker, self._book, self._proposals = asker, book, proposals
        self._repeats, self._entries = repeats, entries
        before, self._n_trials = start.before, start.study.n_trials
        self._is_exact = is_single and start.is_as_before
        self._repeats_are_drawn = self._is_exact and before is not None and before.n_trials == self._n_trials
        self._lost: set[int] = set()
        self._searched = set() if before is None else _searched(before)

    def enter(self) -> Iterator[Row]:
        """Enter every trial of before, and yield each as the copy for Optuna has it.

        Raises:
            OtherStudy: If a trial was asked for something else than its parameters stand for now.
            StudyUnwritable: If a trial that was under way cannot be closed.
        """
        past = self._start.past
        was_launched = True
        for trial in in_order(past, self._folder):
            if self._repeats_are_drawn and was_launched:
                n_left = self._n_trials - self._book.n_counted
                while self._repeats.start_next(n_left, only_done=True):
                    continue
            yield self._entered(trial)
            was_launched = trial.asked.reused_from is None and not trial.asked.violations
        self._entries.number = past.next_number
        self._asker.n_draws = past.next_draw
        if not self._repeats_are_drawn:
            self._repeats.enter_done()

    def _entered(self, trial: PastTrial) -> Row:
        asked = trial.asked
        if not is_finished(trial):
            trial = self._closed(trial)
        assert trial.record is not None
        cell = self._cell(asked)
        proposal = self._proposals.taken(asked, cell)
        is_asked_for = cell is not None or proposal is not None
        if proposal is None and asked.origin is Origin.SAMPLER and self._is_exact:
            proposal = self._drawn_again(asked)
        if proposal is None:
            proposal = self._asker.of_past(asked, cell)
        ended = ended_of(trial, self._book)
        outcome = ended.record.outcome
        if isinstance(outcome, Reused) and outcome != trial.record.outcome:
            with writing(trial.folder.path):  # its controller had no time to say that another has its set-up
                ended.record.write(trial.folder)
        is_again = is_asked_for and isinstance(outcome, Interrupted) and self._is_due_again(asked, outcome)
        result, sentence = self._entries.take_in(proposal, asked, ended, is_again=is_again)
        self._entries.n_refused += isinstance(outcome, Incompatible) and not asked.violations
        self._proposals.hear(result)
        if not self._repeats_are_drawn:
            self._repeats.enter_done(asked.number)
        return Row(self._book[asked.number], sentence, proposal.inside)

    def _closed(self, trial: PastTrial) -> PastTrial:
        """Return a trial that did not come to its end as interrupted, which its folder says from now on."""
        record = trial.record
        if record is None or not isinstance(record.outcome, Interrupted):
            record = TrialRecord(outcome=Interrupted(reason=LOST))
            with writing(trial.folder.path):
                record.write(trial.folder)
        return replace(trial, record=record)

    def _is_due_again(self, asked: Asked, outcome: Interrupted) -> bool:
        """Tell whether what a trial asked for is proposed once more.

        Once only where the controller was killed: a trial that takes the machine down with it would do so at
        every start.  Whenever it comes to it, where somebody interrupted it.
        """
        if outcome.reason != LOST:
            return True
        self._lost.add(asked.number)
        return asked.again_of not in self._lost

    def _drawn_again(self, asked: Asked) -> Proposal | None:
        """Return what the sampler proposes where it had proposed a trial; None if that is something else."""
        assert asked.draw is not None
        self._asker.n_draws = asked.draw
        found = self._asker.propose(self._book.worst)
        if found is not None and found.overrides == asked.overrides:
            return found
        if found is not None:
            self._asker.withdraw(found)
        log.debug("trial %d is not what the sampler would propose now", asked.number)
        self._is_exact = self._repeats_are_drawn = False
        return None

    def _cell(self, asked: Asked) -> Cell | None:
        """Return the cell of this space that asks for what a trial was asked for; None where there is none.

        Raises:
            OtherStudy: If that cell asks for something else now, and nobody could tell before.
        """
        space, before = self._asker.space, self._start.before
        labels: dict[str, str | None] = {}
        added: set[str] = set()
        for parameter in space.parameters:
            label = asked.parameters.get(parameter.key)
            if label is None and before is not None and parameter.key not in self._searched:
                label = asked.choice.get(parameter.key.removeprefix(GROUP))
                label = label or label_before(parameter.key, before.fingerprint)
                added.add(parameter.key)
            labels[parameter.name] = label
        cell = space.cell(labels)
        shown = space.shown(cell)
        given, was_given = set(space.overrides(cell)), set(asked.overrides)
        is_it = {key: label for key, label in shown.items() if key not in added} == {
            key: label for key, label in asked.parameters.items() if key not in added
        }
        # One that a file has asked for may have more than the space has.
        if not is_it or was_given - given or len(given - was_given) > len(added):
            return None
        if before is None and asked.requested_hash not in (
            "",
            self._asker.legal.verdict(cell).requested_hash,
        ):
            raise OtherStudy(
                f"trial {asked.number} asked for other settings than {' '.join(asked.overrides)} stands for "
                "now; begin another study with hydra.sweeper.study_name=<name>"
            )
        return cell


def _searched(study: Study) -> set[str]:
    return {str(node.get("key", name)) for name, node in study.fingerprint.get("space", {}).items()}
