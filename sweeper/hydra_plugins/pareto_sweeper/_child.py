"""What a job's process does: Hydra's own `run_job`, with as much of Hydra's state as a job can ask for.

The state is made once for a launcher and goes to each job in pieces: what cannot be pickled, or is not
wanted, is left out, and Hydra makes it anew when somebody asks for it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, cast

import cloudpickle
from hydra._internal.callbacks import Callbacks
from hydra.core.config_loader import ConfigLoader
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig
from omegaconf.basecontainer import BaseContainer

from memsweep.config.masking import secrets_masked
from memsweep.record.rivals import Rivals
from memsweep.trial.process import learn_rivals, learn_set_ups

# Scanning for plugins takes 20 ms; a job that composes configs itself has it done on first use.
_NEVER_SENT = frozenset({"Plugins"})
# Every option of every group: only for jobs that compose configs themselves, which trials do not.
CONFIG_SOURCES = frozenset({"ConfigStore", "GlobalHydra"})

HydraState = Mapping[str, bytes]


def hydra_state(without: frozenset[str] = frozenset()) -> dict[str, bytes]:
    """Return Hydra's process-wide state, each part pickled.

    Args:
        without: Names of singleton classes to leave out.
    """
    parts = {
        kind.__name__: (kind, instance)
        for kind, instance in Singleton._instances.items()
        if kind.__name__ not in _NEVER_SENT | without
    }
    state = {}
    for name, part in parts.items():
        try:
            state[name] = cloudpickle.dumps(part)
        except (pickle.PicklingError, TypeError, AttributeError):
            continue
    return {**state, "resolvers": cloudpickle.dumps(BaseContainer._resolvers)}


def run_in_process(
    task_function: bytes,
    callbacks: Callbacks,
    config: DictConfig,
    state: HydraState,
    known: Mapping[str, int],
    rivals: Rivals | None,
) -> JobReturn:
    """Run one job in this process, which was made for it.

    Args:
        task_function: The app's main function, pickled.
        callbacks: The app's callbacks.
        config: The job's composed config.
        state: What `hydra_state` returned.
        known: Effective hash to the trial that measured it.
        rivals: What a trial is cut short for being worse than.

    Raises:
        Exception: What the job raised, so that its traceback is in the job's stderr.log.
    """
    for name, part in state.items():
        if name == "resolvers":
            BaseContainer._resolvers = pickle.loads(part)
        else:
            kind, instance = pickle.loads(part)
            Singleton._instances[kind] = instance
    setup_globals()
    learn_set_ups(known)
    learn_rivals(rivals)
    task: TaskFunction = pickle.loads(task_function)
    # Of the context, `run_job` uses the callbacks; the job's config is composed already.
    context = HydraContext(config_loader=cast(ConfigLoader, None), callbacks=callbacks)
    with secrets_masked():
        job_return = run_job(
            task_function=task,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
            hydra_context=context,
        )
    if job_return.status is JobStatus.FAILED:
        error: Any = job_return._return_value
        raise error
    return job_return
