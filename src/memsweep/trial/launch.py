"""One trial from its configuration to its record, in a process of its own.

What a study's launcher does for each trial is the same without the parts that are Hydra's
(`hydra_plugins.pareto_sweeper.launcher`); both agree on what is preloaded and how a folder begins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import yaml

from memsweep.config.schema import TrialConfig
from memsweep.machine import Device, device
from memsweep.ranks.plan import plan_of
from memsweep.record.folder import TrialFolder, write_text
from memsweep.record.rivals import Rivals
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.settings import Settings, merge
from memsweep.trial.ending import record_interrupted, record_of
from memsweep.trial.environment import trial_environment
from memsweep.trial.isolate import ProcessPool, ProcessRequest, pickled
from memsweep.trial.rooms import IN_ORDER, Rooms
from memsweep.trial.watch import OnPhase

# torch first: the template watches what others ask of it while they are imported.
PRELOAD = ("torch", "memsweep.trial.run")
_ENGINE = "deepspeed"


def run_isolated(
    config: TrialConfig,
    catalogue: Catalogue,
    folder: TrialFolder,
    *,
    pool: ProcessPool | None = None,
    on_phase: OnPhase | None = None,
    base: Mapping[str, str] | None = None,
    rivals: Rivals | None = None,
) -> TrialRecord:
    """Run one trial in a process of its own and return what is known of it, however it ended.

    Args:
        config: The trial.
        catalogue: Where its techniques come from.
        folder: Its folder; an outcome that is there already is removed.
        pool: Keeps the template between trials; None makes one for this trial only.
        on_phase: Called with each phase as it begins.
        base: The environment to start from; None means this process's.
        rivals: What it is cut short for being worse than; None measures it to its end.

    Raises:
        ConfigError: If two settings of the trial contradict each other.
        KeyboardInterrupt: After Ctrl-C, with the process ended and the folder saying so.
    """
    if pool is None:
        with ProcessPool(max_templates=1) as own:
            return run_isolated(
                config, catalogue, folder, pool=own, on_phase=on_phase, base=base, rivals=rivals
            )
    settings = merge(config.technique, config.trainer.name, catalogue)
    environment = trial_environment(config, settings, os.environ if base is None else base)
    begin_folder(folder)
    try:
        with Rooms() as rooms, rooms.taken() as room:
            request = ProcessRequest(
                function=pickled(partial(run_here, config, catalogue, folder, rivals)),
                environment={**environment, **room.environment},
                folder=folder.path,
                timeout_seconds=config.launch.timeout_seconds,
                preload=preload_of(config, settings),
            )
            end = pool.run(request, on_phase)
            record = record_of(end, folder, config.launch.timeout_seconds)
            room.is_in_order = isinstance(record.outcome, IN_ORDER)
    except KeyboardInterrupt:
        record_interrupted(folder)
        raise
    return record


def preload_of(config: TrialConfig, settings: Settings) -> tuple[str, ...]:
    """Return what the template of a trial imports.

    Where DeepSpeed is installed accelerate imports it in every trial, to ask whether a model is one of its
    own.  On CUDA that is left to the trial unless it needs it: what it does to a device has not been seen.
    """
    plan = plan_of(settings.launch)
    on_cpu = device(config.launch.device)[0] is Device.CPU
    if (plan is not None and plan.deepspeed_config) or (on_cpu and find_spec(_ENGINE) is not None):
        return (*PRELOAD, _ENGINE)
    return PRELOAD


def n_processes_of(settings: Settings) -> int:
    """Return of how many processes a trial is, each with a device or a core of its own."""
    plan = plan_of(settings.launch)
    return 1 if plan is None else plan.n_processes


def run_here(
    config: TrialConfig, catalogue: Catalogue, folder: TrialFolder, rivals: Rivals | None = None
) -> TrialRecord:
    """Run one trial in this process, which must have been made for it."""
    from memsweep.trial.run import run_trial  # imports torch

    return run_trial(config, catalogue, folder, rivals=rivals)


def begin_folder(
    folder: TrialFolder, config: Mapping[str, Any] | None = None, overrides: Sequence[str] = ()
) -> None:
    """Make a trial's folder ready: nothing of an earlier run that could be taken for this one's.

    Args:
        folder: The folder, made when missing.
        config: The composed configuration, resolved; None when it is written already.
        overrides: What was typed for this trial.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    for leftover in (folder.outcome, folder.effective):
        leftover.unlink(missing_ok=True)
    if config is not None:
        write_text(folder.config, yaml_text(config))
        write_text(folder.overrides, "".join(f"{override}\n" for override in overrides))


def yaml_text(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML, in its own order."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the C one where PyYAML was built with it
    return str(yaml.dump(dict(data), Dumper=dumper, sort_keys=False, allow_unicode=True, width=100))
