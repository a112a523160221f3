"""`hydra/launcher=isolated`: the door that Hydra knocks on.  Everything behind it is imported when needed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class IsolatedLauncher(Launcher):
    """Runs each job in a process of its own; see sweeper/README.md.

    A job that fails, however it fails, is a `JobReturn` with status FAILED, whose exception has an
    `outcome` (`memsweep.record.outcome`).  Only Ctrl-C leaves `launch`.

    The processes that jobs are forked from live as long as the launcher: a sweeper may launch one job at a
    time, and closes it with `close` when there are no more (else the interpreter's end does).  With several
    slots `launch` runs its jobs side by side, and returns when all have ended; a sweeper that has one job
    after another calls `run` in threads of its own, and no job waits for others.

    Attributes:
        slots: How many jobs may run side by side.
        on_phase: Called with a job's number and each phase (`memsweep.record.outcome.Phase`) that it reports,
            in the thread that runs it; may be set.
        known: Effective hash to the number of the trial that measured it; may be set, and a trial with such
            a set-up ends as reused instead of measuring again.
        rivals: Job number to what it is held against (`memsweep.record.rivals`); may be set, and a trial that
            turns out worse ends as cut short instead of being measured to its end.
        seconds: Of the last job that `launch` ran: `compose`, each phase that it reported, `total` of its
            process.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.slots = int(settings["slots"])
        self.on_phase: Callable[[int, Any], None] | None = None
        self.known: Mapping[str, int] = {}
        self.rivals: Mapping[int, Any] = {}
        self.seconds: Mapping[str, float] = {}
        self._setup: tuple[HydraContext, TaskFunction, DictConfig] | None = None
        self._jobs: Any = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what the jobs need."""
        self._setup = hydra_context, task_function, config

    def prepare(self, overrides: Sequence[str] | None = None) -> None:
        """Start the template for jobs like this one, without waiting; failing that, `launch` will say why.

        Args:
            overrides: The first job's; None: what was typed, without what is swept.

        Raises:
            ConfigError: If there are more slots than cores, or than devices.
        """
        self._get_jobs(overrides).prepare(overrides)

    def check(self, overrides: Sequence[str]) -> None:
        """Say what is wrong with the slots for jobs like this one, without starting anything.

        Args:
            overrides: The first job's.

        Raises:
            ConfigError: If there are more slots than cores, or than devices.
        """
        self._get_jobs(overrides)
        self.close()

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs, one after another or, with several slots, side by side."""
        from ._slots import in_slots

        def run(number: int) -> JobReturn:
            overrides = job_overrides[number - initial_job_idx]
            returned, self.seconds = self.run(overrides, number, self.known, self.rivals.get(number))
            return returned

        numbers = range(initial_job_idx, initial_job_idx + len(job_overrides))
        if not numbers:
            return []
        self._get_jobs(job_overrides[0])
        return in_slots(self.slots, numbers, run, self.interrupt)

    def run(
        self, overrides: Sequence[str], number: int, known: Mapping[str, int], rivals: Any = None
    ) -> tuple[JobReturn, Mapping[str, float]]:
        """Run one job.  May be called from several threads, after `prepare`.

        Args:
            overrides: The job's.
            number: The job's.
            known: See the attribute.
            rivals: What this job is held against.

        Returns:
            How it ended, and what `seconds` would hold.
        """
        found: tuple[JobReturn, Mapping[str, float]] = self._get_jobs(overrides).run(
            list(overrides), number, self.on_phase, known, rivals
        )
        return found

    def interrupt(self) -> None:
        """End the jobs that run in other threads, each of which raises KeyboardInterrupt there."""
        if self._jobs is not None:
            self._jobs.interrupt()

    def close(self) -> None:
        """End the templates.  A later `launch` starts new ones."""
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None

    def _get_jobs(self, overrides: Sequence[str] | None) -> Any:
        from ._jobs import Jobs  # brings cloudpickle and memsweep; Hydra scans this file at every start

        assert self._setup is not None, "setup() comes first"
        if self._jobs is None:
            jobs = Jobs(self.settings, *self._setup)
            jobs.share_out(overrides)
            self._jobs = jobs
        return self._jobs
