"""A launcher's jobs, one process each: compose, say what environment, run, return what Hydra expects.

What is particular to trials of techniques (a complete environment, config.yaml, the timeout of the
config) is done where the composed config is a trial's; any other app runs as Hydra would run it,
in a process of its own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from memsweep.errors import ConfigError, TrialError
from memsweep.machine import Device, device
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Phase
from memsweep.record.rivals import Rivals
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.trial.ending import error_of, record_interrupted, record_of
from memsweep.trial.holding import Holding, Leases
from memsweep.trial.isolate import ProcessEnd, ProcessPool, ProcessRequest, pickled
from memsweep.trial.launch import begin_folder
from memsweep.trial.lease import leases
from memsweep.trial.rooms import IN_ORDER, Room, Rooms

from ._child import CONFIG_SOURCES, HydraState, hydra_state, run_in_process
from ._composition import compose
from ._job import Job, job_of
from ._launcher_settings import require_launcher
from ._returns import failed_process, not_begun

log = logging.getLogger(__name__)

OnPhase = Callable[[int, Phase], None]
"""Takes the number of a job and the phase that it is in."""


class Jobs:
    """Runs a launcher's jobs, and keeps what they share.  `run` may be called from several threads.

    Args:
        settings: Of the launcher (`config.IsolatedLauncherConf`).
        hydra_context: Hydra's.
        task_function: The app's main function.
        config: The sweep's config.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        hydra_context: HydraContext,
        task_function: TaskFunction,
        config: DictConfig,
    ) -> None:
        setup_globals()
        require_launcher(settings)
        self._settings = settings
        self._context = hydra_context
        self._task_function = cloudpickle.dumps(task_function)
        self._config = config
        self._pool = ProcessPool(
            start_method=settings["start_method"], max_templates=settings["max_templates"]
        )
        self._rooms = Rooms()
        self._catalogue: Catalogue | None = None
        self._states: dict[bool, HydraState] = {}
        self._lock = threading.RLock()
        self._leases: Leases | None = None

    def share_out(self, overrides: Sequence[str] | None) -> None:
        """Give each slot its part of the machine, as a job with these overrides would see all of it.

        Raises:
            ConfigError: If there are not so many cores or devices.
        """
        n_slots = self._settings["slots"]
        if n_slots == 1:
            return
        job = self._tentative(overrides)
        environment = dict(os.environ) if job is None else _seen(job)
        trial = None if job is None else job.trial
        on_devices = trial is None or device(trial.launch.device)[0] is Device.CUDA
        shared = leases(n_slots, environment, on_devices=on_devices)
        log.info("%d trials side by side, each with %s to itself", n_slots, shared[0].text)
        self._leases = Leases(shared)

    def prepare(self, overrides: Sequence[str] | None) -> None:
        """Start the template that a job with these overrides needs; what is wrong with them shows later."""
        job = self._tentative(overrides)
        if job is None:
            return
        try:
            needs = job.needs(None if self._leases is None else self._leases.shared[0])
        except ConfigError as problem:
            log.debug("nothing is made ready for %s: %s", overrides, problem)
        else:
            self._pool.prepare(needs.environment, needs.preload)

    def run(
        self,
        overrides: list[str],
        number: int,
        on_phase: OnPhase | None,
        known: Mapping[str, int],
        rivals: Rivals | None,
    ) -> tuple[JobReturn, Mapping[str, float]]:
        """Run one job to its end, in a slot of its own where there are several.

        Args:
            overrides: The job's.
            number: The job's.
            on_phase: Called with each phase that the job reports.
            known: Effective hash to the trial that measured it.
            rivals: What it is cut short for being worse than; None runs it to its end.

        Returns:
            What Hydra expects, and seconds: `compose`, each phase, `total` of its process, `waited` for a
            part of the machine, `devices`, all of its processes together, each on a device of its own.

        Raises:
            KeyboardInterrupt: After Ctrl-C, with the job's process ended and its folder saying so.
        """
        began = time.monotonic()
        try:
            job = self._composed(overrides, number)
            n_processes = job.n_processes
        except Exception as error:
            return not_begun(overrides, error), {}
        composed = time.monotonic()
        room_of = self._rooms.taken() if job.is_trial else nullcontext()
        with self._part(n_processes) as holding, room_of as room:
            had = time.monotonic()
            returned, seconds = self._run(job, holding, room, overrides, number, on_phase, known, rivals)
            devices = (time.monotonic() - had) * n_processes
        return returned, {
            **seconds,
            "compose": composed - began,
            "waited": had - composed,
            "devices": devices,
        }

    def _run(
        self,
        job: Job,
        holding: Holding,
        room: Room | None,
        overrides: list[str],
        number: int,
        on_phase: OnPhase | None,
        known: Mapping[str, int],
        rivals: Rivals | None,
    ) -> tuple[JobReturn, Mapping[str, float]]:
        try:
            with self._lock:  # Hydra's state is the process's
                needs = job.needs(holding.lease)
                folder = TrialFolder(self._folder_of(job.config))
                state = self._state(job.is_trial)
            # What places a repeat in its trial's folder is not the trial's.
            typed = [override for override in overrides if not override.startswith("hydra.")]
            begin_folder(folder, job.data if job.is_trial else None, typed)
        except Exception as error:
            return not_begun(overrides, error), {}
        function = partial(
            run_in_process,
            self._task_function,
            self._context.callbacks,
            job.config,
            state,
            dict(known),
            rivals,
        )
        request = ProcessRequest(
            function=pickled(function),
            environment={**needs.environment, **({} if room is None else room.environment)},
            folder=folder.path,
            timeout_seconds=needs.timeout_seconds,
            preload=needs.preload,
            lease=holding.lease,
        )
        try:
            end = self._pool.run(request, None if on_phase is None else partial(on_phase, number))
        except KeyboardInterrupt:
            record_interrupted(folder)
            raise
        except TrialError as error:  # start_method=fork where that is unsound
            end = ProcessEnd(error=error)
        holding.survivors = end.survivors
        if room is None and isinstance(end.returned, JobReturn):
            return end.returned, end.seconds
        record = record_of(end, folder, needs.timeout_seconds)
        if room is not None:
            room.is_in_order = isinstance(record.outcome, IN_ORDER)
        if isinstance(end.returned, JobReturn):
            return end.returned, end.seconds
        return failed_process(job.config, folder, error_of(record, end, folder)), end.seconds

    def interrupt(self) -> None:
        """Have every `run`, in whatever thread, end its job and raise KeyboardInterrupt."""
        if self._leases is not None:
            self._leases.interrupt()
        self._pool.interrupt()

    def close(self) -> None:
        """End the templates, and remove what trials have left in their rooms."""
        self._pool.close()
        self._rooms.close()

    def _part(self, n_processes: int) -> AbstractContextManager[Holding]:
        """Return what has a part of the machine for a job; all of it where there are no slots."""
        return nullcontext(Holding()) if self._leases is None else self._leases.taken(n_processes)

    def _tentative(self, overrides: Sequence[str] | None) -> Job | None:
        """Return a job that is not run; None where it cannot be composed, which its own run will say.

        Args:
            overrides: The job's; None: what was typed, without what is swept.
        """
        if overrides is None:
            parser = OverridesParser.create(config_loader=self._context.config_loader)
            parsed = parser.parse_overrides([str(one) for one in self._config.hydra.overrides.task])
            overrides = [str(one.input_line) for one in parsed if not one.is_sweep_override()]
        try:
            return self._composed(list(overrides), 0)
        except Exception as problem:
            log.debug("nothing is made ready for %s: %s", overrides, problem)
            return None

    def _composed(self, overrides: list[str], number: int) -> Job:
        with self._lock:  # OmegaConf's resolvers know one config a process
            config = compose(self._context.config_loader, self._config, overrides)
            return job_of(config, number, self._settings, self._techniques)

    def _techniques(self) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = read_catalogue(conf_folder())
        return self._catalogue

    def _folder_of(self, config: DictConfig) -> Path:
        """Return the job's output folder, as `run_job` will find it in the job's process."""
        with self._lock:  # HydraConfig is the process's
            hydra_config = HydraConfig.instance()
            before = hydra_config.cfg
            try:
                hydra_config.set_config(config)
                return Path(str(config.hydra.sweep.dir), str(config.hydra.sweep.subdir)).absolute()
            finally:
                hydra_config.cfg = before

    def _state(self, is_trial: bool) -> HydraState:
        if is_trial not in self._states:
            self._states[is_trial] = hydra_state(CONFIG_SOURCES if is_trial else frozenset())
        return self._states[is_trial]


def _seen(job: Job) -> Mapping[str, str]:
    """Return the environment of a job that has the whole machine; this one where the job cannot have any."""
    try:
        return job.environment(None, sees_all=True)
    except ConfigError:
        return dict(os.environ)
