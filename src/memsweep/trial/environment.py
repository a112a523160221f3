"""The complete environment of a trial's process: the caller's, ours, the launch's, the techniques'.

Later ones win, except that a technique and the launch may not both set a variable: a trial would be
labelled with a technique that another setting has undone.
"""

from __future__ import annotations

from collections.abc import Mapping

from memsweep.config.schema import DatasetSource, ModelSource, TrialConfig
from memsweep.errors import ConfigError, TwoOwners
from memsweep.machine import ALLOCATOR_VARIABLES, Device, device, n_cores
from memsweep.ranks.plan import Plan, plan_of
from memsweep.technique.settings import Settings
from memsweep.trial.lease import Lease, visible_devices
from memsweep.trial.variables import DEVICES, hides_devices

# Each gives way to the caller's own environment.
_DEFAULTS = {
    # A template may be forked only while it has one thread; OpenBLAS (numpy) and jemalloc (pyarrow) would
    # start theirs at import.  torch computes with OpenMP, not with OpenBLAS.
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # Threads that wait for each other sleep.  By default GNU OpenMP has them spin first, and on a machine
    # that does anything else a step took 8 times as long (25 s against 3 s); on an idle one the difference
    # was within 10 % for the smallest model.  Measured with torch 2.13.0+cpu on 2 cores.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Ask the driver whether there is a device, instead of initializing CUDA, which a fork cannot inherit.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # The order of a set must not depend on which template a trial came from.
    "PYTHONHASHSEED": "0",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # Following what tensors hold would write the profiler's own notices into each trial's log.
    "KINETO_LOG_LEVEL": "6",
}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def trial_environment(
    config: TrialConfig,
    settings: Settings,
    base: Mapping[str, str],
    lease: Lease | None = None,
    *,
    sees_all: bool = False,
) -> dict[str, str]:
    """Return every variable of a trial's process.

    Args:
        config: The trial.
        settings: What its techniques set.
        base: The caller's environment, usually `os.environ`.
        lease: What the trial has of the machine; None for all of it.  Its devices are part of those that
            the trial would see otherwise, whoever names them.
        sees_all: It sees more devices than it has processes, too: to know what there is to share out.

    Raises:
        TwoOwners: If the launch and a technique set one variable to different values.
        ConfigError: If its processes cannot have a device each.
    """
    plan = plan_of(settings.launch)
    launch, technique = dict(config.launch.environment), dict(settings.environment)
    clashes = [name for name in technique if launch.get(name, technique[name]) != technique[name]]
    if clashes:
        lines = [
            f"launch.environment.{name}={launch[name]!r} and a technique, which sets {technique[name]!r}"
            for name in clashes
        ]
        raise TwoOwners("two settings of one variable: " + "; ".join(lines) + "; choose one of them")
    environment = {
        **_DEFAULTS,
        **_offline(config),
        **base,
        **_device(config),
        **_threads(config, base, lease, plan),
    }
    if any(name in technique for name in ALLOCATOR_VARIABLES):
        for name in ALLOCATOR_VARIABLES:  # the name that is not set here would win over the one that is
            environment.pop(name, None)
    environment |= {**launch, **technique}
    if lease is not None and not hides_devices(environment):
        environment |= lease.environment
    return environment | _own_devices(config, plan, environment, sees_all=sees_all)


def _offline(config: TrialConfig) -> dict[str, str]:
    """Return what keeps libraries from trying the network where nothing comes from it."""
    from_hub = config.model.source is ModelSource.HUB or config.dataset.source is DatasetSource.HUB
    return {} if from_hub else _OFFLINE


def _device(config: TrialConfig) -> dict[str, str]:
    return {DEVICES: ""} if config.launch.device is Device.CPU else {}


def threads_of_share(lease: Lease) -> dict[str, str]:
    """Return the compute threads of a trial that has a part of the cores: one for each of them."""
    return dict.fromkeys(_THREADS, str(len(lease.cores)))


def _threads(
    config: TrialConfig, base: Mapping[str, str], lease: Lease | None, plan: Plan | None
) -> dict[str, str]:
    """Return the compute threads: what is asked for, else its share, the caller's setting, one per core.

    Several processes share out what a single one would have, whatever the caller has set for one.
    """
    if config.launch.threads:
        return dict.fromkeys(_THREADS, str(config.launch.threads))
    if plan is not None:
        n_shared = n_cores() if lease is None else len(lease.cores)
        return dict.fromkeys(_THREADS, str(max(1, n_shared // plan.n_processes)))
    if lease is not None:
        return threads_of_share(lease)
    return {name: base.get(name) or str(n_cores()) for name in _THREADS}


def _own_devices(
    config: TrialConfig, plan: Plan | None, environment: Mapping[str, str], *, sees_all: bool
) -> dict[str, str]:
    """Return the variable that shows a trial one device for each of its processes, if it would see more.

    A trainer of one process that sees several copies its model to each of them, and takes that much larger
    batches.  Source: transformers==5.24.0 training_args.py n_gpu.

    Raises:
        ConfigError: If there is not a device, or what stands in for one, for each process; what to type.
    """
    n_processes = 1 if plan is None else plan.n_processes
    if device(config.launch.device)[0] is Device.CPU:
        if plan is not None and not config.launch.simulates_devices:
            raise ConfigError(
                f"{n_processes} processes need a device each, and launch.device={config.launch.device} "
                "has none; launch=cpu_simulated lets processes on a CPU stand in for devices"
            )
        return {}
    visible = visible_devices(environment)
    if plan is not None and len(visible) < n_processes:
        raise ConfigError(
            f"{n_processes} processes need a device each, and a trial sees {len(visible)}; ask for "
            f"{len(visible) or 'one'} of them, or for fewer slots (hydra.launcher.slots)"
        )
    return {} if sees_all or len(visible) <= n_processes else {DEVICES: ",".join(visible[:n_processes])}
