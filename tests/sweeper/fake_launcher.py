"""A launcher that runs nothing, and what a sweep with it left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher

from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study, read_study
from memsweep.record.trial import TrialResult
from memsweep.search.grammar import read_value

Task = Callable[[int, Mapping[str, Any]], Any]


class FakeLauncher(Launcher):
    """Answers each job with what a function makes of its number and overrides.

    An exception that the function raises is the job's, as it would be with Hydra's own launchers;
    `KeyboardInterrupt` leaves `launch`, as Ctrl-C does.

    Attributes:
        launched: Number and overrides of every job, in their order.
        known: As of the isolated launcher.
        knew: What `known` was, at every call of `launch`.
        rivals: As of the isolated launcher.
        held: First number and what `rivals` was, at every call of `launch`.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.launched: list[tuple[int, list[str]]] = []
        self.known: Mapping[str, int] = {}
        self.knew: list[dict[str, int]] = []
        self.rivals: Mapping[int, Any] = {}
        self.held: list[tuple[int, dict[int, Any]]] = []

    def setup(self, **_: Any) -> None:
        """Nothing is needed."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        self.knew.append(dict(self.known))
        self.held.append((initial_job_idx, dict(self.rivals)))
        return [self._job(number, list(o)) for number, o in enumerate(job_overrides, start=initial_job_idx)]

    def _job(self, number: int, overrides: list[str]) -> JobReturn:
        self.launched.append((number, overrides))
        job = JobReturn(overrides=overrides, status=JobStatus.COMPLETED)
        pairs = [override.split("=", 1) for override in overrides if "=" in override]
        try:
            job.return_value = self.task(number, {key.lstrip("+"): read_value(text) for key, text in pairs})
        except Exception as error:
            job.status, job.return_value = JobStatus.FAILED, error
        return job


class Forgetful(FakeLauncher):
    """The same for studies of thousands of trials: it keeps nothing of what it was given and told."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        returned = super().launch(job_overrides, initial_job_idx)
        for kept in (self.launched, self.knew, self.held):
            kept.clear()
        return returned


class FakeSlots(FakeLauncher):
    """The same for several jobs side by side, each in the thread that asks for it.

    Attributes:
        slots: As of the isolated launcher.
        running: Numbers of the jobs that run now.
        most: The most that ever ran at once.
        together: Every pair of jobs that ran at the same time, the lower number first.
        interrupted: Set by `interrupt`.
    """

    def __init__(self, task: Task, slots: int) -> None:
        super().__init__(task)
        self.slots = slots
        self.running: list[int] = []
        self.most = 0
        self.together: set[tuple[int, int]] = set()
        self.interrupted = threading.Event()
        self._lock = threading.Lock()

    def run(
        self, overrides: list[str], number: int, known: Mapping[str, int], rivals: Any
    ) -> tuple[JobReturn, Mapping[str, float]]:
        with self._lock:
            self.knew.append(dict(known))
            self.held.append((number, {number: rivals}))
            self.together |= {(min(number, one), max(number, one)) for one in self.running}
            self.running.append(number)
            self.most = max(self.most, len(self.running))
        try:
            return self._job(number, overrides), {"compose": 0.5}
        finally:
            with self._lock:
                self.running.remove(number)

    def sleep(self, seconds: float) -> None:
        """Let a job take its time; an interrupt ends it."""
        if self.interrupted.wait(seconds):
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        self.interrupted.set()


@dataclass
class Outcome:
    """What a sweep left behind.

    Attributes:
        exit_code: What the program would have ended with.
        folder: The study's folder.
        launcher: The launcher, with all it was asked to launch.
        stdout: What was printed.
        stderr: What was printed to the standard error.
    """

    exit_code: int
    folder: StudyFolder
    launcher: FakeLauncher
    stdout: str = ""
    stderr: str = ""

    @property
    def study(self) -> Study:
        """study.json."""
        return read_study(self.folder.path)[0]

    @property
    def results(self) -> tuple[TrialResult, ...]:
        """results.jsonl."""
        return read_study(self.folder.path)[1]

    @property
    def overrides(self) -> list[list[str]]:
        """What each launched trial was given."""
        return [overrides for _, overrides in self.launcher.launched]
