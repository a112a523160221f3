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
    time, and closes it with `close` when there are no more (else the interpreter's end does).

    Attributes:
        on_phase: Called with each phase (`memsweep.record.outcome.Phase`) that a job reports; may be set.
        known: Effective hash to the number of the trial that measured it; may be set, and a trial with such
            a set-up ends as reused instead of measuring again.
        seconds: Of the last job: `compose`, each phase that it reported, `total` of its process.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.on_phase: Callable[[Any], None] | None = None
        self.known: Mapping[str, int] = {}
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
        """
        self._get_jobs().prepare(overrides)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs, one after another."""
        jobs, returns = self._get_jobs(), []
        for number, overrides in enumerate(job_overrides, start=initial_job_idx):
            returns.append(jobs.run(list(overrides), number, self.on_phase, self.known))
            self.seconds = jobs.seconds
        return returns

    def close(self) -> None:
        """End the templates.  A later `launch` starts new ones."""
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None

    def _get_jobs(self) -> Any:
        from ._jobs import Jobs  # brings cloudpickle and memsweep; Hydra scans this file at every start

        assert self._setup is not None, "setup() comes first"
        if self._jobs is None:
            self._jobs = Jobs(self.settings, *self._setup)
        return self._jobs
