"""Which proposal is next: those given beforehand, then the sampler's; what asks for the same has to wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from dataclasses import replace

from memsweep.record.asked import Asked, Origin
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialResult
from memsweep.search.ask import Asker
from memsweep.search.proposal import Proposal
from memsweep.search.space import Cell
from memsweep.study.book import Book
from memsweep.study.ladder import Ladder
from memsweep.study.warm_start import WarmStart


class Proposals:
    """The proposals of a study, one after another.

    A proposal that asks for what a trial under way has asked for is put aside until that one has ended: by
    then there is a measurement to reuse.
    """

    def __init__(
        self,
        asker: Asker,
        book: Book,
        first: Iterable[Proposal],
        ladder: Ladder | None,
        warm_start: WarmStart | None,
    ) -> None:
        """Prepare, without asking anything.

        Args:
            asker: Proposes trials.
            book: The trials so far.
            first: Proposals that come before the sampler's own.
            ladder: Proposes the last trials; None where the sampler does.
            warm_start: What an earlier study knows; None for none.
        """
        self._warm_start = warm_start
        self._asker, self._book, self._ladder = asker, book, ladder
        self._queue = deque(first)
        self._aside: list[Proposal] = []
        self._again: list[Proposal] = []

    def next(self, busy: Container[str], n_left: int) -> Proposal | None:
        """Return the next proposal; None when there is none, or none before something has ended.

        Args:
            busy: Requested hashes of the trials that are under way.
            n_left: Trials that are still to begin.
        """
        if self._again:
            return self._again.pop(0)
        for place, proposal in enumerate(self._aside):
            if proposal.verdict.requested_hash not in busy:
                return self._aside.pop(place)
        while True:
            drawn = self._queue.popleft() if self._queue else self._drawn(n_left)
            if drawn is None or drawn.verdict.violations or drawn.verdict.requested_hash not in busy:
                return drawn
            self._aside.append(drawn)

    def again(self, proposal: Proposal, number: int) -> None:
        """Propose once more, before anything else, what trial `number` did not bring to an end."""
        self._again.append(replace(proposal, origin=Origin.AGAIN, again_of=number))

    def taken(self, asked: Asked, cell: Cell | None) -> Proposal | None:
        """Return the proposal that a trial of this study answers, which is no longer due; None for none.

        Args:
            asked: What the trial's folder says.
            cell: The cell that it has in this space; None for none.
        """
        if asked.again_of is not None:
            due = [one for one in self._again if one.again_of == asked.again_of]
            if due:
                self._again.remove(due[0])
                return due[0]
            return None
        for one in self._queue:
            is_it = one.overrides == asked.overrides
            if is_it or (cell is not None and one.overrides == self._asker.space.overrides(cell)):
                self._queue.remove(one)
                return one
        return None

    def hear(self, result: TrialResult) -> str | None:
        """Take in a finished trial; return what is to be said of an earlier study after the first."""
        if self._warm_start is None or not isinstance(result.outcome, Measured):
            return None
        said, proposals = self._warm_start.after(result, self._book.study)
        self._warm_start = None
        self._queue.extend(proposals)
        return said

    def _drawn(self, n_left: int) -> Proposal | None:
        rung = None if self._ladder is None else self._ladder.next(n_left)
        return self._asker.propose(self._book.worst) if rung is None else rung

    def exhausted(self) -> str:
        """Say that there is none, and how far the space was gone through."""
        listed = self._asker.legal.listed()
        if listed is None:
            return "no cell found that was not tried"
        return f"space exhausted ({len(listed) - (self._asker.n_left or 0)} of {len(listed)})"


def label(proposal: Proposal) -> str:
    """Return a proposal in a few words, as its result will say it."""
    options = [f"{k}={v}" for k, v in proposal.verdict.choice.items() if v != "baseline"]
    others = [
        f"{key.rsplit('.', 1)[-1]}={label}"
        for key, label in proposal.parameters.items()
        if not key.startswith("technique/")
    ]
    return " ".join(options + others) or "baseline"
