"""A launcher's jobs, one process each: compose, say what environment, run, return what Hydra expects.

What is particular to trials of techniques (a complete environment, config.yaml, the timeout of the
config) is done where the composed config is a trial's; any other app runs as Hydra would run it,
in a process of its own.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobRuntime, JobStatus, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from memsweep.config.schema import trial_config
from memsweep.errors import TrialError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Phase
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.settings import merge
from memsweep.trial.ending import error_of, record_interrupted, record_of
from memsweep.trial.environment import trial_environment
from memsweep.trial.isolate import ProcessEnd, ProcessPool, ProcessRequest, pickled
from memsweep.trial.launch import PRELOAD, begin_folder

from ._child import CONFIG_SOURCES, HydraState, hydra_state, run_in_process
from ._composition import compose

log = logging.getLogger(__name__)

# The keys of a config by which a trial of techniques is known from any other app's job.
_TRIAL = frozenset({"technique", "trainer", "measure", "launch"})
_HYDRA = ("hydra._internal.logging_config", f"{__package__}._child")
OnPhase = Callable[[Phase], None]


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
    """Runs a launcher's jobs, and keeps what they share.

    Attributes:
        seconds: Of the last job: `compose`, each phase, `total`.

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
        self._lock = threading.Lock()
        self.seconds: dict[str, float] = {}

    def prepare(self, overrides: Sequence[str] | None) -> None:
        """Start the template that a job with these overrides needs; what is wrong with them shows later."""
        if overrides is None:
            parser = OverridesParser.create(config_loader=self._context.config_loader)
            parsed = parser.parse_overrides(_typed(self._config))
            overrides = [str(one.input_line) for one in parsed if not one.is_sweep_override()]
        try:
            job = self._compose(list(overrides), 0)
        except Exception as problem:
            log.debug("no template started ahead: %s", problem)
            return
        self._pool.prepare(job.environment, job.preload)

    def run(
        self, overrides: list[str], number: int, on_phase: OnPhase | None, known: Mapping[str, int]
    ) -> JobReturn:
        """Run one job to its end.

        Args:
            overrides: The job's.
            number: The job's.
            on_phase: Called with each phase that the job reports.
            known: Effective hash to the trial that measured it.

        Raises:
            KeyboardInterrupt: After Ctrl-C, with the job's process ended and its folder saying so.
        """
        began = time.monotonic()
        try:
            job = self._compose(overrides, number)
            composed = time.monotonic() - began
            folder = TrialFolder(self._folder_of(job.config))
            # What places a repeat in its trial's folder is not the trial's.
            typed = [override for override in overrides if not override.startswith("hydra.")]
            begin_folder(folder, job.data if job.is_trial else None, typed)
        except Exception as error:
            return _not_begun(overrides, error)
        function = partial(
            run_in_process,
            self._task_function,
            self._context.callbacks,
            job.config,
            self._state(job.is_trial),
            dict(known),
        )
        request = ProcessRequest(
            function=pickled(function),
            environment=job.environment,
            folder=folder.path,
            timeout_seconds=job.timeout_seconds,
            preload=job.preload,
        )
        try:
            end = self._pool.run(request, on_phase)
        except KeyboardInterrupt:
            record_interrupted(folder)
            raise
        except TrialError as error:  # start_method=fork where that is unsound
            end = ProcessEnd(error=error)
        self.seconds = {"compose": composed, **end.seconds}
        if isinstance(end.returned, JobReturn):
            if job.is_trial:
                record_of(end, folder, job.timeout_seconds)
            return end.returned
        record = record_of(end, folder, job.timeout_seconds)
        return _failed(job.config, folder, error_of(record, end, folder))

    def close(self) -> None:
        """End the templates."""
        self._pool.close()

    def _compose(self, overrides: list[str], number: int) -> _Job:
        config = compose(self._context.config_loader, self._config, overrides)
        with open_dict(config):
            config.hydra.job.id = str(number)
            config.hydra.job.num = number
        settings = self._settings
        base = {
            **os.environ,
            **_texts(config.hydra.job.env_set),
            **_texts(settings["environment"] or {}),
        }
        timeout_seconds, asked = settings["timeout_seconds"], settings["preload"]
        preload = (*(asked or ()), *_HYDRA)
        if not config.keys() >= _TRIAL:
            return _Job(config, False, {}, base, timeout_seconds, preload)
        keys = [str(key) for key in config if key != "hydra"]
        data: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, keys), resolve=True)
        trial = trial_config(data)
        if self._catalogue is None:
            self._catalogue = read_catalogue(conf_folder())
        merged = merge(trial.technique, trial.trainer.name, self._catalogue)
        environment = trial_environment(trial, merged, base)
        timeout_seconds = trial.launch.timeout_seconds if timeout_seconds is None else timeout_seconds
        preload = (*((*PRELOAD, "memsweep.entry") if asked is None else asked), *_HYDRA)
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


def _typed(config: DictConfig) -> list[str]:
    """Return the overrides of the app's own config, as typed."""
    return [str(override) for override in config.hydra.overrides.task]


def _texts(node: Any) -> dict[str, str]:
    plain: Any = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    return {str(name): str(value) for name, value in dict(plain).items()}


def _not_begun(overrides: list[str], error: Exception) -> JobReturn:
    """Return the failure of a job whose config cannot be composed, or whose folder cannot be made."""
    reason = f"it could not begin: {str(error).splitlines()[0] if str(error) else repr(error)}"
    error.outcome = Crashed(reason=reason, phase=Phase.START)  # type: ignore[attr-defined]
    job_return = JobReturn(overrides=overrides, status=JobStatus.FAILED)
    job_return.return_value = error
    return job_return


def _failed(config: DictConfig, folder: TrialFolder, error: BaseException) -> JobReturn:
    """Return what `run_job` would have, had it lived to tell."""
    config = copy.deepcopy(config)
    with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
        config.hydra.runtime.output_dir = str(folder.path)
    task_config = copy.deepcopy(config)
    with read_write(task_config), open_dict(task_config):
        del task_config["hydra"]
    job_return = JobReturn(
        overrides=_typed(config),
        cfg=task_config,
        hydra_cfg=OmegaConf.masked_copy(config, ["hydra"]),
        working_dir=str(folder.path) if config.hydra.job.chdir else os.getcwd(),  # noqa: PTH109, as text
        task_name=JobRuntime.instance().get("name"),
        status=JobStatus.FAILED,
    )
    job_return.return_value = error
    return job_return
