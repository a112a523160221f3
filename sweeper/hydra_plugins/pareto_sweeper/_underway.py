"""What is with the launcher, and who hears of its end.

All of it is done in the controller's thread: book, sampler and files know of no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memsweep.study.book import Book, Ended
from memsweep.study.progress import Progress

from ._interrupts import Interrupts
from ._launches import Job, Launches
from ._returns import interrupted_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, and what is done when it has ended.

    Attributes:
        job: The job.
        label: What it is called meanwhile.
        enter: Takes how it ended.
    """

    job: Job
    label: str
    enter: Callable[[Ended], None]


class Underway:
    """The jobs that were started and have not been entered yet."""

    def __init__(self, launches: Launches, book: Book, progress: Progress, interrupts: Interrupts) -> None:
        """Begin with none.

        Args:
            launches: Runs them.
            book: The trials; its study is what they are measured for.
            progress: What is told meanwhile.
            interrupts: Keeps Ctrl-C from splitting what belongs together.
        """
        self._launches, self._book = launches, book
        self._progress, self._interrupts = progress, interrupts
        self._tasks: dict[int, Task] = {}

    def __contains__(self, number: int) -> bool:
        """Tell whether a job of this number is under way."""
        return number in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def n_free(self) -> int:
        """How many more jobs may be started before one has ended."""
        return self._launches.n_free

    def start(self, tasks: Sequence[Task], known: Mapping[str, int]) -> None:
        """Give jobs to the launcher.

        Args:
            tasks: The jobs, of numbers that are not under way.
            known: Effective hash to the number of the trial that measured it.
        """
        for task in tasks:
            self._tasks[task.job.number] = task
            self._progress.begin(task.job.number, task.label)
        self._launches.start([task.job for task in tasks], self._book.study, known)

    def wait(self) -> None:
        """Wait until something has ended, and have it entered."""
        ended = self._launches.wait()
        with self._interrupts.held():
            for job, end in ended:
                self._tasks.pop(job.number).enter(end)

    def drain(self) -> None:
        """Wait until everything has ended."""
        while self._tasks:
            self.wait()

    def interrupt(self) -> None:
        """End everything, and have it entered as interrupted, or as it had ended by then."""
        with self._interrupts.held():
            self._launches.interrupt()
            for number in list(self._tasks):
                task = self._tasks.pop(number)
                record = interrupted_record(task.job.folder, self._book.study)
                task.enter(Ended(record=record, folder=task.job.folder))
