"""What `hydra/sweeper=pareto` and `hydra/launcher=isolated` may be told, and what they do untold.

Hydra executes this module at every start of every app, and once more when it is imported already: it
imports nothing heavy and keeps no state.  Annotations must not be postponed here, see sweeper/README.md.
"""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class ParetoSweeperConf:
    """`hydra/sweeper=pareto`; the names of the official Optuna plugin keep their meaning.

    Attributes:
        sampler: Its name (tpe, nsgaii, nsgaiii, gp, qmc, random, grid), or a mapping with `name` and
            what that sampler takes.
        study_name: The study's folder is outputs/<study_name>; None: trainer, model and time.
        storage: Where Optuna's own tools look: `auto` (SQLite in the study's folder), an Optuna URL, or
            null for none.  A mirror: results never depend on it.
        n_trials: How many trials to run; those that reuse another's measurement do not count.
        repeats: How often each set-up is measured, the further times at random later places of the study;
            None: the app's measure.repeats where it has that, else 1.
        front_repeats: How often the set-ups on the front are measured again at the end, in shuffled order;
            None: the app's measure.front_repeats where it has that, else 0.
        n_jobs: How many trials to hand to the launcher at once.  It runs them side by side only if it can.
        max_failure_rate: Stop once more than this share of n_trials has crashed.
        direction: `minimize`, `maximize` or a list, for apps that return numbers without names.
        objectives: Name to `minimize` or `maximize`; takes the place of `direction`.
        constraints: Name to {measure, at_most or at_least}: a number, or `baseline` for what the first
            trial measured.  A bound of null is no constraint.
        params: Key to what it may be, in Hydra's override grammar: "choice(8,16)", "interval(0,1)".
        option_parameters: `fixed` leaves parameters of options at their defaults unless they are swept
            by name; `searched` tries the values that each option's file offers.
        enqueue: A file of trials to run after the baseline and before the sampler's own.
        dry_run: Say what would run and what is refused, and run nothing.
        seed: Of the sampler; its own `seed`, where given, comes first.
        progress: `auto` (live on a terminal), `live`, `plain` or `off`.
        custom_search_space: Not supported; the message says what replaces it.
    """

    _target_: str = "hydra_plugins.pareto_sweeper.sweeper.ParetoSweeper"
    _recursive_: bool = False
    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "tpe"}])
    sampler: Any = MISSING
    study_name: str | None = None
    storage: Any = "auto"
    n_trials: int = 20
    repeats: int | None = None
    front_repeats: int | None = None
    n_jobs: int = 1
    max_failure_rate: float = 1.0
    direction: Any = "minimize"
    objectives: dict[str, str] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    option_parameters: str = "fixed"
    enqueue: str | None = None
    dry_run: bool = False
    seed: int = 0
    progress: str = "auto"
    custom_search_space: Any = None


_store = ConfigStore.instance()
_store.store(group="hydra/sweeper", name="pareto", node=ParetoSweeperConf, provider="pareto_sweeper")
_taken = _store.repo.get("hydra", {}).get("sweeper", {}).get("sampler", {})
for _name in ("tpe", "nsgaii", "nsgaiii", "gp", "qmc", "random", "grid"):
    if f"{_name}.yaml" not in _taken:  # the official Optuna plugin's are understood too, and left alone
        _node = {"name": _name, "seed": None}
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
        max_templates: Templates kept alive, one for each environment that a fork cannot give itself.
        environment: Variables that every job's process gets.
    """

    _target_: str = "hydra_plugins.pareto_sweeper.launcher.IsolatedLauncher"
    _recursive_: bool = False
    preload: list[str] | None = None
    timeout_seconds: float | None = None
    start_method: str = "auto"
    max_templates: int = 3
    environment: dict[str, str] = field(default_factory=dict)


_store.store(group="hydra/launcher", name="isolated", node=IsolatedLauncherConf, provider="pareto_sweeper")
