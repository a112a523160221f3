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
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from memsweep.config.schema import trial_config
from memsweep.errors import ConfigError, TrialError
from memsweep.machine import Device, device
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Phase
from memsweep.record.rivals import Rivals
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.settings import merge
from memsweep.trial.ending import error_of, record_interrupted, record_of
from memsweep.trial.environment import threads_of_share, trial_environment
from memsweep.trial.isolate import ProcessEnd, ProcessPool, ProcessRequest, pickled
from memsweep.trial.launch import begin_folder, preload_of
from memsweep.trial.lease import Holding, Lease, Leases, leases
from memsweep.trial.variables import hides_devices

from ._child import CONFIG_SOURCES, HydraState, hydra_state, run_in_process
from ._composition import compose
from ._returns import failed_process, not_begun

log = logging.getLogger(__name__)

# The keys of a config by which a trial of techniques is known from any other app's job.
_TRIAL = frozenset({"technique", "trainer", "measure", "launch"})
_HYDRA = ("hydra._internal.logging_config", f"{__package__}._child")
OnPhase = Callable[[int, Phase], None]
"""Takes the number of a job and the phase that it is in."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One job, composed.

    Attributes:
        config: Everything, `hydra` included.
        is_trial: It is a trial of techniques.
        data: The config as plain data without `hydra`; empty unless it is a trial.
        environment: Of its process, complete.
        timeout_seconds: None means no limit.
        preload: What its template imports.
    """

    config: DictConfig
    is_trial: bool
    data: Mapping[str, Any]
    environment: Mapping[str, str]
    timeout_seconds: float | None
    preload: tuple[str, ...]


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
        self._settings = settings
        self._context = hydra_context
        self._task_function = cloudpickle.dumps(task_function)
        self._config = config
        self._pool = ProcessPool(
            start_method=settings["start_method"], max_templates=settings["max_templates"]
        )
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
        if n_slots < 1:
            raise ConfigError(f"hydra.launcher.slots must be at least 1, got {n_slots}")
        if n_slots == 1:
            return
        job = self._tentative(overrides)
        environment = dict(os.environ) if job is None else job.environment
        asked = job.data["launch"]["device"] if job is not None and job.is_trial else None
        on_devices = asked is None or device(Device(asked))[0] is Device.CUDA
        shared = leases(n_slots, environment, on_devices=on_devices)
        log.info("%d trials side by side, each with %s to itself", n_slots, shared[0].text)
        self._leases = Leases(shared)

    def prepare(self, overrides: Sequence[str] | None) -> None:
        """Start the template that a job with these overrides needs; what is wrong with them shows later."""
        job = self._tentative(overrides)
        if job is not None:
            self._pool.prepare(job.environment, job.preload)

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
            What Hydra expects, and seconds: `compose`, each phase, `total` of its process.

        Raises:
            KeyboardInterrupt: After Ctrl-C, with the job's process ended and its folder saying so.
        """
        with nullcontext(Holding()) if self._leases is None else self._leases.taken() as holding:
            return self._run(holding, overrides, number, on_phase, known, rivals)

    def _run(
        self,
        holding: Holding,
        overrides: list[str],
        number: int,
        on_phase: OnPhase | None,
        known: Mapping[str, int],
        rivals: Rivals | None,
    ) -> tuple[JobReturn, Mapping[str, float]]:
        began = time.monotonic()
        try:
            with self._lock:  # OmegaConf's resolvers know one config a process
                job = self._compose(overrides, number, holding.lease)
                composed = time.monotonic() - began
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
            environment=job.environment,
            folder=folder.path,
            timeout_seconds=job.timeout_seconds,
            preload=job.preload,
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
        seconds = {"compose": composed, **end.seconds}
        if isinstance(end.returned, JobReturn):
            if job.is_trial:
                record_of(end, folder, job.timeout_seconds)
            return end.returned, seconds
        record = record_of(end, folder, job.timeout_seconds)
        return failed_process(job.config, folder, error_of(record, end, folder)), seconds

    def interrupt(self) -> None:
        """Have every `run`, in whatever thread, end its job and raise KeyboardInterrupt."""
        if self._leases is not None:
            self._leases.interrupt()
        self._pool.interrupt()

    def close(self) -> None:
        """End the templates."""
        self._pool.close()

    def _tentative(self, overrides: Sequence[str] | None) -> _Job | None:
        """Return a job that is not run; None where it cannot be composed, which its own run will say.

        Args:
            overrides: The job's; None: what was typed, without what is swept.
        """
        if overrides is None:
            parser = OverridesParser.create(config_loader=self._context.config_loader)
            parsed = parser.parse_overrides([str(one) for one in self._config.hydra.overrides.task])
            overrides = [str(one.input_line) for one in parsed if not one.is_sweep_override()]
        try:
            return self._compose(list(overrides), 0, None if self._leases is None else self._leases.shared[0])
        except Exception as problem:
            log.debug("nothing is made ready for %s: %s", overrides, problem)
            return None

    def _compose(self, overrides: list[str], number: int, lease: Lease | None) -> _Job:
        config = compose(self._context.config_loader, self._config, overrides)
        with open_dict(config):
            config.hydra.job.id = str(number)
            config.hydra.job.num = number
        settings = self._settings
        base = {
            **(threads_of_share(lease) if lease is not None else {}),
            **os.environ,
            **_texts(config.hydra.job.env_set),
            **_texts(settings["environment"] or {}),
        }
        timeout_seconds, asked = settings["timeout_seconds"], settings["preload"]
        preload = (*(asked or ()), *_HYDRA)
        if not config.keys() >= _TRIAL:
            if lease is not None and not hides_devices(base):
                base |= lease.environment
            return _Job(config, False, {}, base, timeout_seconds, preload)
        keys = [str(key) for key in config if key != "hydra"]
        data: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, keys), resolve=True)
        trial = trial_config(data)
        if self._catalogue is None:
            self._catalogue = read_catalogue(conf_folder())
        merged = merge(trial.technique, trial.trainer.name, self._catalogue)
        environment = trial_environment(trial, merged, base, lease)
        if lease is not None and not lease.devices and device(trial.launch.device)[0] is Device.CUDA:
            raise ConfigError(
                f"launch.device={trial.launch.device} needs a device for each of {lease.n_slots} slots, and "
                "none was shared out: the study's first trial computes on none, or the driver shows none"
            )
        timeout_seconds = trial.launch.timeout_seconds if timeout_seconds is None else timeout_seconds
        preload = (*((*preload_of(trial, merged), "memsweep.entry") if asked is None else asked), *_HYDRA)
        return _Job(config, True, data, environment, timeout_seconds, preload)

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


def _texts(node: Any) -> dict[str, str]:
    plain: Any = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    return {str(name): str(value) for name, value in dict(plain).items()}
