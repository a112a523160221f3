"""From jobs to how they ended, through whatever launcher; what may pass is tried again.

A device that another program holds says nothing of a set-up.  So a job that ended for such a reason
(`Crashed.may_pass`) is launched again under its number, after a pause, and only its last end counts; what
the tries before it left is in its folder, below `tries`.

A launcher that has several slots is given one job for each, and the next as soon as one has ended.  Any other
is given a batch, and gives it back as one.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher

from memsweep.errors import ConfigError
from memsweep.record.asked import Asked
from memsweep.record.folder import TrialFolder, writing
from memsweep.record.outcome import Crashed, Incompatible
from memsweep.record.required import judged
from memsweep.record.rivals import Rivals
from memsweep.record.study import Study
from memsweep.study.book import Ended

from ._returns import failed_job, folder_of, keep, record_of, require_room, returned_value
from ._slots import Slots

log = logging.getLogger(__name__)

KEPT_RETURNS = 64
"""Job returns that `sweep()` gives back: each holds a whole config, and a study may have thousands."""

PAUSES_SECONDS = (1.0, 5.0)
"""Before the second and the third try: whoever holds a device for a moment has let it go by then."""

TRIES = "tries"
"""Folder, in a job's own, of what its earlier tries left."""

TRIED = "(tried "
"""In the reason of a crash that may pass and was tried as often as it is."""

_STAYS = frozenset({TRIES, "repeats", "trial.json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the launcher is to run.

    Attributes:
        number: Its trial's number.
        overrides: What it is given.
        folder: Where it runs, as far as is known before it has.
        asked: What its folder says of it; None for a further run of a trial.
        rivals: What it may be cut short for, where the launcher can do that; None runs it to its end.
    """

    number: int
    overrides: tuple[str, ...]
    folder: Path
    asked: Asked | None = None
    rivals: Rivals | None = None


class Launches:
    """Has jobs run.

    Attributes:
        returns: What the launcher gave back, batch by batch, as Hydra's sweepers return it.
        device_seconds: How long devices were computed on, all together: each process of a job has one.
    """

    def __init__(
        self,
        launcher: Launcher,
        *,
        are_named: bool,
        n_jobs: int = 1,
        pauses_seconds: Sequence[float] | None = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        """Prepare, without running anything.

        Args:
            launcher: Any of Hydra's.
            are_named: The app must return a mapping with the objectives' names.
            n_jobs: How many make a batch, for a launcher without slots.
            pauses_seconds: One before each further try; None means `PAUSES_SECONDS`.
            wait: Waits for so many seconds; None waits until `interrupt` at most.
        """
        self.returns: list[Sequence[JobReturn]] = []
        self.device_seconds = 0.0
        self.n_slots = int(getattr(launcher, "slots", 1))
        self._launcher: Any = launcher
        self._are_named = are_named
        self._n_jobs = n_jobs
        self._pauses_seconds = PAUSES_SECONDS if pauses_seconds is None else pauses_seconds
        self._interrupted = threading.Event()
        self._wait = wait or self._interrupted.wait
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._slots: Slots[list[Ended]] = Slots()
        self._batch: Callable[[], list[Ended]] | None = None

    @property
    def is_batched(self) -> bool:
        """Whether the launcher is given several jobs as one batch."""
        return self.n_slots == 1 and self._n_jobs > 1

    @property
    def n_free(self) -> int:
        """How many more jobs may be started before one has ended."""
        if self.n_slots > 1:
            return self.n_slots - self._slots.n_running
        return 0 if self._jobs else self._n_jobs

    def start(self, jobs: Sequence[Job], study: Study, known: Mapping[str, int]) -> None:
        """Begin jobs, no more than `n_free`; `wait` tells how they ended, and without slots it runs them.

        Args:
            jobs: The jobs, with consecutive numbers.
            study: Its objectives.
            known: See `run`.
        """
        self._jobs.update({job.number: job for job in jobs})
        if self.n_slots == 1:
            self._batch = partial(self.run, jobs, study, known)
            return
        for job in jobs:
            self._slots.start(job.number, partial(self.run, [job], study, known))

    def wait(self) -> list[tuple[Job, Ended]]:
        """Wait until one of the jobs that were started has ended, or their batch has.

        Raises:
            KeyboardInterrupt: After Ctrl-C; what has not ended by then goes on until `interrupt`.
        """
        if self._batch is not None:
            ended = self._batch()
            jobs, self._batch = list(self._jobs.values()), None
            self._jobs.clear()
            return list(zip(jobs, ended, strict=True))
        number, ended = self._slots.wait()
        return [(self._jobs.pop(number), ended[0])]

    def interrupt(self) -> None:
        """End the jobs that were started, and wait for their end; what they left is in their folders."""
        if self._slots.n_running:
            self._interrupted.set()
            self._launcher.interrupt()
            self._slots.join()
        self._batch = None
        self._jobs.clear()

    def run(self, jobs: Sequence[Job], study: Study, known: Mapping[str, int]) -> list[Ended]:
        """Run jobs with consecutive numbers, one only where there are slots, and return how each ended.

        Args:
            jobs: The jobs.
            study: Its objectives.
            known: Effective hash to the number of the trial that measured it: a job with such a set-up ends
                as reused, where the launcher can do that.

        Raises:
            KeyboardInterrupt: After Ctrl-C; what had ended by then is in the jobs' folders.
        """
        ended = self._launched(jobs, study, known)
        return [self._settled(job, end, study, known) for job, end in zip(jobs, ended, strict=True)]

    def _launched(self, jobs: Sequence[Job], study: Study, known: Mapping[str, int]) -> list[Ended]:
        began = time.monotonic()
        spent: Mapping[str, float] = {}
        try:
            returned, spent = self._returned(jobs, known)
        except (Exception, SystemExit) as error:
            returned = [failed_job(job.overrides, error) for job in jobs]
        seconds = (time.monotonic() - began - spent.get("waited", 0.0)) / len(jobs)
        compose = {name: value for name, value in spent.items() if name == "compose"}
        with self._lock:
            self.device_seconds += spent.get("devices", seconds * len(jobs))
            if sum(map(len, self.returns)) < KEPT_RETURNS:
                self.returns.append(returned)
        missing = [
            failed_job(job.overrides, RuntimeError("the launcher gave nothing back"))
            for job in jobs[len(returned) :]
        ]
        return [
            self._ended(job, answer, study, {**compose, "total": seconds})
            for job, answer in zip(jobs, [*returned, *missing], strict=True)
        ]

    def _returned(
        self, jobs: Sequence[Job], known: Mapping[str, int]
    ) -> tuple[list[JobReturn], Mapping[str, float]]:
        """Return what the launcher gives back, and what it says of the seconds that went by."""
        overrides, first = [list(job.overrides) for job in jobs], jobs[0]
        if self.n_slots > 1:  # one job a thread: what is for all of them must not be told in passing
            returned, seconds = self._launcher.run(overrides[0], first.number, known, first.rivals)
            return [returned], seconds
        if hasattr(self._launcher, "known"):
            self._launcher.known = known
        if hasattr(self._launcher, "rivals"):
            self._launcher.rivals = {job.number: job.rivals for job in jobs}
        answers = list(self._launcher.launch(overrides, initial_job_idx=first.number))
        return answers, getattr(self._launcher, "seconds", {})

    def _ended(self, job: Job, answer: JobReturn, study: Study, seconds: Mapping[str, float]) -> Ended:
        folder = TrialFolder(folder_of(answer, job.folder))
        is_elsewhere = folder.path.absolute() != job.folder.absolute()  # the launcher knew better
        if job.asked is not None and (is_elsewhere or not folder.asked.exists()):  # the job has removed it
            with writing(folder.path):
                job.asked.write(folder)
        record = record_of(answer, folder, study, are_named=self._are_named)
        record = replace(record, seconds={**record.seconds, **seconds})
        require_room(answer, record.outcome, folder.path)
        if not isinstance(record.outcome, Incompatible):  # which may mean that there is to be no study
            keep(record, folder)
        record = replace(record, outcome=judged(record.outcome, study))
        return Ended(record=record, folder=folder.path, returned=returned_value(answer))

    def _settled(self, job: Job, ended: Ended, study: Study, known: Mapping[str, int]) -> Ended:
        """Return how a job ended that is tried again while its end may pass."""
        for n_tries, pause in enumerate(self._pauses_seconds, start=1):
            outcome = ended.record.outcome
            if not (isinstance(outcome, Crashed) and outcome.may_pass):
                return ended
            set_aside(ended.folder, n_tries)
            log.info("trial %d %s; it is tried again in %g s", job.number, outcome.text, pause)
            self._wait(pause)
            if self._interrupted.is_set():
                raise KeyboardInterrupt
            (ended,) = self._launched([job], study, known)
        outcome = ended.record.outcome
        if isinstance(outcome, Crashed) and outcome.may_pass:
            n_tries = len(self._pauses_seconds) + 1
            outcome = replace(outcome, reason=f"{outcome.reason} {TRIED}{n_tries} times)")
            ended = replace(ended, record=replace(ended.record, outcome=outcome))
            with contextlib.suppress(OSError):
                ended.record.write(TrialFolder(ended.folder))
        return ended


def require_one_way(launcher: Launcher | None, n_jobs: int) -> None:
    """Raise if trials are to be handed over as batches to a launcher that takes them one by one.

    Raises:
        ConfigError: If so.
    """
    if n_jobs > 1 and hasattr(launcher, "slots"):
        raise ConfigError(
            f"hydra.sweeper.n_jobs={n_jobs} is for launchers that run what they are given as one batch; "
            "hydra/launcher=isolated takes the next trial as soon as one has ended: type "
            f"hydra.launcher.slots={n_jobs}, and leave n_jobs at 1"
        )


def set_aside(folder: Path, number: int) -> None:
    """Move what try `number` of a job left to a folder of its own, so that the next finds a clean one."""
    if not folder.is_dir():
        return
    aside = folder / TRIES / str(number)
    try:
        aside.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.iterdir()):
            if path.name not in _STAYS:
                shutil.move(path, aside / path.name)
    except OSError as error:
        log.warning("what try %d left in %s is lost to the next: %s", number, folder, error)
