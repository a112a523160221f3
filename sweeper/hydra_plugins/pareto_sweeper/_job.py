"""One job, composed: its config, what it is, and what its process gets with a part of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from memsweep.config.schema import TrialConfig, trial_config
from memsweep.errors import ConfigError
from memsweep.machine import Device, device
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.settings import Settings, merge
from memsweep.trial.environment import threads_of_share, trial_environment
from memsweep.trial.launch import n_processes_of, preload_of
from memsweep.trial.lease import Lease
from memsweep.trial.variables import hides_devices

# The keys of a config by which a trial of techniques is known from any other app's job.
_TRIAL = frozenset({"technique", "trainer", "measure", "launch"})
_HYDRA = ("hydra._internal.logging_config", f"{__package__}._child")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job's process needs.

    Attributes:
        environment: Every variable.
        preload: What its template imports.
        timeout_seconds: None means no limit.
    """

    environment: Mapping[str, str]
    preload: tuple[str, ...]
    timeout_seconds: float | None


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    Attributes:
        config: Everything, `hydra` included.
        launcher: The launcher's settings.
        data: The config as plain data without `hydra`; empty unless it is a trial of techniques.
        trial: The same as types; None unless it is one.
        settings: What the trial's techniques set.
    """

    config: DictConfig
    launcher: Mapping[str, Any]
    data: Mapping[str, Any]
    trial: TrialConfig | None
    settings: Settings

    @property
    def is_trial(self) -> bool:
        """Whether it is a trial of techniques."""
        return self.trial is not None

    @property
    def n_processes(self) -> int:
        """Of how many processes it is, each with a device or a core of its own."""
        return n_processes_of(self.settings)

    def environment(self, lease: Lease | None, *, sees_all: bool = False) -> Mapping[str, str]:
        """Return every variable of its process.

        Args:
            lease: What it has of the machine; None for all of it.
            sees_all: It sees more devices than it has processes, too.

        Raises:
            ConfigError: If its settings contradict each other, or there are too few devices for it.
        """
        base = {
            **(threads_of_share(lease) if lease is not None else {}),
            **os.environ,
            **_texts(self.config.hydra.job.env_set),
            **_texts(self.launcher["environment"] or {}),
        }
        if self.trial is not None:
            return trial_environment(self.trial, self.settings, base, lease, sees_all=sees_all)
        return base if lease is None or hides_devices(base) else base | lease.environment

    def needs(self, lease: Lease | None) -> Needs:
        """Return what its process needs.

        Args:
            lease: What it has of the machine; None for all of it.

        Raises:
            ConfigError: As `environment` does, or if no slot has a device.
        """
        environment = self.environment(lease)
        timeout_seconds, asked = self.launcher["timeout_seconds"], self.launcher["preload"]
        if self.trial is None:
            return Needs(environment, (*(asked or ()), *_HYDRA), timeout_seconds)
        launch = self.trial.launch
        if lease is not None and not lease.devices and device(launch.device)[0] is Device.CUDA:
            raise ConfigError(
                f"launch.device={launch.device} needs a device for each of {lease.n_slots} slots, and "
                "none was shared out: the study's first trial computes on none, or the driver shows none"
            )
        timeout_seconds = launch.timeout_seconds if timeout_seconds is None else timeout_seconds
        own = (*preload_of(self.trial, self.settings), "memsweep.entry") if asked is None else asked
        return Needs(environment, (*own, *_HYDRA), timeout_seconds)


def job_of(
    config: DictConfig, number: int, launcher: Mapping[str, Any], catalogue: Callable[[], Catalogue]
) -> Job:
    """Return a job, made of its composed config, which gets its number.

    Args:
        config: The config.
        number: The job's.
        launcher: The launcher's settings.
        catalogue: Returns the techniques; called where the job is a trial of some.

    Raises:
        ConfigError: If a trial's config is not what it must be.
    """
    with open_dict(config):
        config.hydra.job.id = str(number)
        config.hydra.job.num = number
    if not config.keys() >= _TRIAL:
        return Job(config, launcher, {}, None, Settings())
    keys = [str(key) for key in config if key != "hydra"]
    data: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, keys), resolve=True)
    trial = trial_config(data)
    settings = merge(trial.technique, trial.trainer.name, catalogue())
    return Job(config, launcher, data, trial, settings)


def _texts(node: Any) -> dict[str, str]:
    plain: Any = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    return {str(name): str(value) for name, value in dict(plain).items()}
