"""What `hydra/sweeper=pareto` and `hydra/launcher=isolated` may be told, and what they do untold.

Hydra executes this module at every start of every app, and once more when it is imported already: it
imports nothing heavy and keeps no state.  Annotations must not be postponed here, see sweeper/README.md.
"""

from dataclasses import dataclass, field
from typing import Any

from hydra import __version__
from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

# Lets `pareto` run where a file names the official plugin's class, see _chosen.py.  From version 1.4 on Hydra
# warns of every callback, at every start of the app; there the class has to be typed.
_CALLBACKS = [{"chosen@_global_.hydra.callbacks.chosen": "pareto"}] if __version__.startswith("1.3.") else []


@dataclass
class ParetoSweeperConf:
    """`hydra/sweeper=pareto`; the names of the official Optuna plugin keep their meaning.

    Attributes:
        sampler: Its name (auto, structured, tpe, nsgaii, nsgaiii, gp, qmc, random, grid), or a mapping with
            `name` and what that sampler takes.
        study_name: The study's folder is outputs/<study_name>; None: trainer, model and time.
        storage: Where Optuna's own tools look: `auto` (SQLite in the study's folder), an Optuna URL, or
            null for none.  A mirror: results never depend on it.
        n_trials: How many trials to run; those that reuse another's measurement do not count.
        repeats: How often each set-up is measured, the further times at random later places of the study;
            None: the app's measure.repeats where it has that, else 1.
        front_repeats: How often the set-ups on the front are measured again at the end, in shuffled order;
            None: the app's measure.front_repeats where it has that, else 0.
        n_jobs: How many trials a launcher is given as one batch, which ends when the last of them has; it
            runs them side by side only if it can.  `isolated` takes no batches: see its `slots`.
        max_seconds: Wall time of the study, in seconds or as "30m", "2h"; None: no limit.  No trial begins
            that would end after it by the median of those before; one that runs is let end.
        max_device_hours: Time of all trials together, in hours or as "30m", "2h", each on one device;
            None: no limit.  Otherwise like max_seconds.
        stagnation: Stop after so many trials in a row over which the front's hypervolume has not grown by
            more than stagnation_tolerance; None: never.  Counts from the first feasible trial on.
        stagnation_tolerance: A share of that hypervolume.
        max_failure_rate: Stop once more than this share of n_trials has crashed, with exit code 1.
        max_failures: Stop once more than so many trials have crashed, with exit code 1; None: no limit.
        fail_fast: Stop at the first that has crashed, with exit code 1.
        ladder: The trials that explain a front, each option alone and the best combination step by step:
            `auto` gives them the last trials where the app has techniques, `first` begins with the options
            alone (the search then finds the front later), `off` leaves them out.
        ladder_share: How much of n_trials the ladder may take at the end, as a share.
        cut_short: End a trial early once its peak of memory breaks a constraint, or it is worse beyond noise
            in every objective than another; for apps that measure with memsweep, ignored by others.
        direction: `minimize`, `maximize` or a list, for apps that return numbers without names.
        objectives: Name to `minimize` or `maximize`; takes the place of `direction`.
        constraints: Name to {measure, at_most or at_least}: a number, or `baseline` for what the first
            trial measured.  A bound of null is no constraint.
        params: Key to what it may be, in Hydra's override grammar: "choice(8,16)", "interval(0,1)".
        when: Key to the choices with which it exists: {momentum: {optimizer: [sgd, nesterov]}}.
        exclude: Combinations that are not to be tried: [{optimizer: sgd, model: large, because: why}].
        option_parameters: `fixed` leaves parameters of options at their defaults unless they are swept
            by name; `searched` tries the values that each option's file offers.
        enqueue: A file of trials to run after the baseline and before the sampler's own.
        warm_start: An earlier study (its name where it is beside this one, else its folder) whose trials
            teach the sampler and whose front is measured again first, where data, machine and versions agree.
        dry_run: Say what would run and what is refused, and run nothing.
        resume: `auto` continues the study where its folder holds trials (where no study_name is typed, the
            one that the same command began and did not end), `require` refuses to begin, `never` to continue.
        extra_trials: So many beyond what the study was to have; n_trials is what it is to have in all.
        seed: Of the sampler; its own `seed`, where given, comes first.
        progress: `auto` (live on a terminal), `live`, `plain` or `off`.
        search_space: The old form of `params`, {type: float, low: 0, high: 1}, as old files have it.
        custom_search_space: Not supported; the message says what replaces it.
    """

    _target_: str = "hydra_plugins.pareto_sweeper.sweeper.ParetoSweeper"
    _recursive_: bool = False
    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "auto"}, *_CALLBACKS])
    sampler: Any = MISSING
    study_name: str | None = None
    storage: Any = "auto"
    n_trials: int = 20
    repeats: int | None = None
    front_repeats: int | None = None
    n_jobs: int = 1
    max_seconds: Any = None
    max_device_hours: Any = None
    stagnation: int | None = None
    stagnation_tolerance: float = 0.001
    max_failure_rate: float = 1.0
    max_failures: int | None = None
    fail_fast: bool = False
    ladder: str = "auto"
    ladder_share: float = 0.2
    cut_short: bool = True
    direction: Any = "minimize"
    objectives: dict[str, str] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] | None = field(default_factory=dict)
    when: dict[str, Any] = field(default_factory=dict)
    exclude: Any = None
    option_parameters: str = "fixed"
    enqueue: str | None = None
    warm_start: str | None = None
    dry_run: bool = False
    resume: str = "auto"
    extra_trials: int = 0
    seed: int = 0
    progress: str = "auto"
    search_space: Any = None
    custom_search_space: Any = None


_store = ConfigStore.instance()
_store.store(group="hydra/sweeper", name="pareto", node=ParetoSweeperConf, provider="pareto_sweeper")
_chosen = {"_target_": "hydra_plugins.pareto_sweeper._chosen.ChosenSweeper"}
_store.store(group="hydra/sweeper/chosen", name="pareto", node=_chosen, provider="pareto_sweeper")
_OF_STRUCTURED = ("cost_weight", "n_startup_trials")
_ARGUMENTS = {
    "auto": _OF_STRUCTURED,
    "structured": _OF_STRUCTURED,
    "tpe": (
        "consider_endpoints",
        "consider_magic_clip",
        "consider_prior",
        "constant_liar",
        "group",
        "multivariate",
        "n_ei_candidates",
        "n_startup_trials",
        "prior_weight",
        "warn_independent_sampling",
    ),
    "nsgaii": ("crossover_prob", "mutation_prob", "population_size", "swapping_prob"),
    "nsgaiii": ("crossover_prob", "dividing_parameter", "mutation_prob", "population_size", "swapping_prob"),
    "gp": ("deterministic_objective", "n_startup_trials", "warn_independent_sampling"),
    "qmc": ("qmc_type", "scramble", "warn_asynchronous_seeding", "warn_independent_sampling"),
}
_taken = _store.repo.get("hydra", {}).get("sweeper", {}).get("sampler", {})
for _name in ("auto", "structured", "tpe", "nsgaii", "nsgaiii", "gp", "qmc", "random", "grid"):
    if f"{_name}.yaml" not in _taken:  # the official Optuna plugin's are understood too, and left alone
        # What it takes, so that it can be set without `+` as with the official plugin; None is not told.
        _node = {"name": _name, "seed": None, **dict.fromkeys(_ARGUMENTS.get(_name, ()))}
        _store.store(group="hydra/sweeper/sampler", name=_name, node=_node, provider="pareto_sweeper")


@dataclass
class IsolatedLauncherConf:
    """`hydra/launcher=isolated`: each job in a process of its own, forked from a warm template.

    Attributes:
        preload: Modules that the template imports once, before the first job; None: what a trial needs
            where the config has techniques, nothing for other apps.
        timeout_seconds: A job that takes longer is ended; None: the config's launch.timeout_seconds where
            it has techniques, no limit for other apps.
        start_method: `auto` forks where that is sound and says so where it is not, `fork` refuses there,
            `spawn` starts a fresh interpreter for every job, which imports everything again.
        slots: How many jobs run side by side, each with as many cores and devices of its own as the others;
            the next begins as soon as one ends.  They share memory bandwidth and clocks, so each is slower
            than alone: such trials are compared only with each other.
        max_templates: Templates kept alive, one for each environment that a fork cannot give itself; more
            while more run jobs.
        environment: Variables that every job's process gets.
    """

    _target_: str = "hydra_plugins.pareto_sweeper.launcher.IsolatedLauncher"
    _recursive_: bool = False
    preload: list[str] | None = None
    timeout_seconds: float | None = None
    start_method: str = "auto"
    slots: int = 1
    max_templates: int = 3
    environment: dict[str, str] = field(default_factory=dict)


_store.store(group="hydra/launcher", name="isolated", node=IsolatedLauncherConf, provider="pareto_sweeper")
