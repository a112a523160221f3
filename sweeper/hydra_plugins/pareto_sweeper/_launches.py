"""From jobs to how they ended, through whatever launcher; what may pass is tried again.

A device that another program holds says nothing of a set-up.  So a job that ended for such a reason
(`Crashed.may_pass`) is launched again under its number, after a pause, and only its last end counts; what
the tries before it left is in its folder, below `tries`.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher

from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Incompatible
from memsweep.record.study import Study
from memsweep.study.book import Ended

from ._returns import failed_job, folder_of, keep, record_of, returned_value

log = logging.getLogger(__name__)

KEPT_RETURNS = 64
"""Job returns that `sweep()` gives back: each holds a whole config, and a study may have thousands."""

PAUSES_SECONDS = (1.0, 5.0)
"""Before the second and the third try: whoever holds a device for a moment has let it go by then."""

TRIES = "tries"
"""Folder, in a job's own, of what its earlier tries left."""

_STAYS = frozenset({TRIES, "repeats"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the launcher is to run.

    Attributes:
        number: Its trial's number.
        overrides: What it is given.
        folder: Where it runs, as far as is known before it has.
    """

    number: int
    overrides: tuple[str, ...]
    folder: Path


class Launches:
    """Has jobs run.

    Attributes:
        returns: What the launcher gave back, batch by batch, as Hydra's sweepers return it.
    """

    def __init__(
        self,
        launcher: Launcher,
        *,
        are_named: bool,
        pauses_seconds: Sequence[float] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare, without running anything.

        Args:
            launcher: Any of Hydra's.
            are_named: The app must return a mapping with the objectives' names.
            pauses_seconds: One before each further try; None means `PAUSES_SECONDS`.
            wait: Waits for so many seconds.
        """
        self.returns: list[Sequence[JobReturn]] = []
        self._launcher = launcher
        self._are_named = are_named
        self._pauses_seconds = PAUSES_SECONDS if pauses_seconds is None else pauses_seconds
        self._wait = wait

    def run(self, jobs: Sequence[Job], study: Study, known: Mapping[str, int]) -> list[Ended]:
        """Run jobs with consecutive numbers, and return how each ended.

        Args:
            jobs: The jobs.
            study: Its objectives.
            known: Effective hash to the number of the trial that measured it: a job with such a set-up ends
                as reused, where the launcher can do that.

        Raises:
            KeyboardInterrupt: After Ctrl-C; what had ended by then is in the jobs' folders.
        """
        if hasattr(self._launcher, "known"):
            self._launcher.known = known
        ended = self._launched(jobs, study)
        return [self._settled(job, end, study) for job, end in zip(jobs, ended, strict=True)]

    def _launched(self, jobs: Sequence[Job], study: Study) -> list[Ended]:
        began = time.monotonic()
        try:
            overrides = [list(job.overrides) for job in jobs]
            returned = list(self._launcher.launch(overrides, initial_job_idx=jobs[0].number))
        except (Exception, SystemExit) as error:
            returned = [failed_job(job.overrides, error) for job in jobs]
        seconds = (time.monotonic() - began) / len(jobs)
        if sum(map(len, self.returns)) < KEPT_RETURNS:
            self.returns.append(returned)
        missing = [
            failed_job(job.overrides, RuntimeError("the launcher gave nothing back"))
            for job in jobs[len(returned) :]
        ]
        return [
            self._ended(job, answer, study, seconds)
            for job, answer in zip(jobs, [*returned, *missing], strict=True)
        ]

    def _ended(self, job: Job, answer: JobReturn, study: Study, seconds: float) -> Ended:
        folder = TrialFolder(folder_of(answer, job.folder))
        record = record_of(answer, folder, study, are_named=self._are_named)
        compose = {k: v for k, v in getattr(self._launcher, "seconds", {}).items() if k == "compose"}
        record = replace(record, seconds={**record.seconds, **compose, "total": seconds})
        if not isinstance(record.outcome, Incompatible):  # which may mean that there is to be no study
            keep(record, folder)
        return Ended(record=record, folder=folder.path, returned=returned_value(answer))

    def _settled(self, job: Job, ended: Ended, study: Study) -> Ended:
        """Return how a job ended that is tried again while its end may pass."""
        for n_tries, pause in enumerate(self._pauses_seconds, start=1):
            outcome = ended.record.outcome
            if not (isinstance(outcome, Crashed) and outcome.may_pass):
                return ended
            set_aside(ended.folder, n_tries)
            log.info("trial %d %s; it is tried again in %g s", job.number, outcome.text, pause)
            self._wait(pause)
            (ended,) = self._launched([job], study)
        outcome = ended.record.outcome
        if isinstance(outcome, Crashed) and outcome.may_pass:
            n_tries = len(self._pauses_seconds) + 1
            outcome = replace(outcome, reason=f"{outcome.reason} (tried {n_tries} times)")
            ended = replace(ended, record=replace(ended.record, outcome=outcome))
            with contextlib.suppress(OSError):
                ended.record.write(TrialFolder(ended.folder))
        return ended


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
