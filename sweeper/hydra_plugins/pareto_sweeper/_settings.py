"""`hydra.sweeper` as types, checked: every problem in it at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from memsweep.config.schema import LARGEST_SEED
from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Constraint, Direction
from memsweep.search.storage import problem_of
from memsweep.secret import masked_text
from memsweep.study.stop import HOUR_SECONDS, StopRules
from memsweep.units import read_seconds

from ._official import translated

_SEARCH_SPACE = (
    "hydra.sweeper.custom_search_space is not supported: it runs code that a config names.  Instead, "
    "hydra.sweeper.when says with what a key exists, {momentum: {optimizer: [sgd, nesterov]}}, and "
    "hydra.sweeper.exclude which combinations are not tried, [{optimizer: sgd, model: large, because: why}]; "
    "parameters of a technique's option are asked only with that option, by themselves"
)
_WORDS = {
    "progress": ("auto", "live", "plain", "off"),
    "option_parameters": ("fixed", "searched"),
    "ladder": ("auto", "first", "off"),
    "resume": ("auto", "require", "never"),
}
_SQLITE = "sqlite:///"
_COUNTS = {"repeats": 1, "front_repeats": 0}  # each with the least it may be


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSettings:
    """What `hydra.sweeper` asks for; config.py describes the fields that keep their names.

    Attributes:
        folder: The study's folder.
        sampler: The sampler's `name` or `_target_`, and what it takes.
        storage: Optuna URL of the mirror; None for none.
        objectives: Name to direction.
        are_named: The objectives have names of their own, so the app must return a mapping.
        enqueue: A file of trials; None for none.
        stop: What ends the study.
        warm_start: Folder of an earlier study to learn from; None for none.
        ladder: `auto`, `first` or `off`.
        ladder_share: Share of the trials that the ladder may have at the end.
        repeats: How often each set-up is measured.
        front_repeats: How often those on the front are measured again.
    """

    study_name: str
    folder: StudyFolder
    sampler: Mapping[str, Any]
    storage: str | None
    stop: StopRules
    cut_short: bool
    warm_start: Path | None
    ladder: str
    ladder_share: float
    repeats: int
    front_repeats: int
    n_jobs: int
    objectives: Mapping[str, Direction]
    are_named: bool
    constraints: Mapping[str, Constraint]
    params: Mapping[str, Any]
    when: Mapping[str, Any]
    exclude: Any
    option_parameters: str
    enqueue: Path | None
    dry_run: bool
    resume: str
    extra_trials: int
    seed: int
    progress: str

    def with_total(self, n_trials: int) -> SweepSettings:
        """Return the same for a study that is to have so many trials in all."""
        return replace(self, stop=replace(self.stop, n_trials=n_trials))

    @property
    def n_trials(self) -> int:
        """How many trials are asked for."""
        return self.stop.n_trials


def read_settings(
    raw: Mapping[str, Any], folder: StudyFolder, study_name: str, app: Mapping[str, Any] | None = None
) -> SweepSettings:
    """Return `raw` checked.

    Args:
        raw: The fields of `hydra.sweeper`, as Hydra hands them to the sweeper.
        folder: The study's folder.
        study_name: Its name.
        app: The app's own `measure` node, which says how often to measure where `raw` does not.

    Raises:
        ConfigError: All problems at once.
    """
    problems: list[str] = []
    data = translated({key: _plain(value) for key, value in raw.items()}, problems)
    counts: dict[str, Any] = {
        key: _count(key, least, data, app or {}, problems) for key, least in _COUNTS.items()
    }
    if data["custom_search_space"] is not None:
        problems.append(_SEARCH_SPACE)
    stop = _stop_rules(data, problems)
    if data["n_jobs"] < 1:
        problems.append(f"hydra.sweeper.n_jobs must be at least 1, got {data['n_jobs']}")
    for key, allowed in _WORDS.items():
        if data[key] not in allowed:
            problems.append(f"hydra.sweeper.{key} must be one of {', '.join(allowed)}, got {data[key]!r}")
    if data["extra_trials"] < 0:
        problems.append(f"hydra.sweeper.extra_trials must be at least 0, got {data['extra_trials']}")
    own = data["sampler"].get("seed") if isinstance(data["sampler"], dict) else None
    for key, seed in (("seed", data["seed"]), ("sampler.seed", own)):
        if seed is not None and not (_is_whole(seed) and 0 <= seed <= LARGEST_SEED):
            problems.append(f"hydra.sweeper.{key} must be from 0 to {LARGEST_SEED}, got {seed!r}")
    if not 0 <= data["ladder_share"] <= 1:
        problems.append(f"hydra.sweeper.ladder_share must be from 0 to 1, got {data['ladder_share']}")
    objectives = _objectives(data["objectives"], data["direction"], problems)
    constraints = _constraints(data["constraints"], problems)
    enqueue = None if data["enqueue"] is None else Path(data["enqueue"])
    if enqueue is not None and not _is_there(enqueue, Path.is_file):
        problems.append(f"hydra.sweeper.enqueue: there is no file {enqueue}")
    sampler = data["sampler"] if isinstance(data["sampler"], dict) else {"name": data["sampler"]}
    storage = _storage(data["storage"], folder, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    same = (
        "cut_short",
        "ladder",
        "ladder_share",
        "n_jobs",
        "params",
        "when",
        "exclude",
        "option_parameters",
        "dry_run",
        "resume",
        "extra_trials",
        "seed",
        "progress",
    )
    return SweepSettings(
        study_name=study_name,
        folder=folder,
        sampler=sampler,
        storage=storage,
        stop=stop,
        objectives=objectives,
        are_named=bool(data["objectives"]),
        constraints=constraints,
        enqueue=enqueue,
        warm_start=_study_folder(data["warm_start"], folder),
        **counts,
        **{key: data[key] for key in same},
    )


def _stop_rules(data: Mapping[str, Any], problems: list[str]) -> StopRules:
    """Return what ends the study; what is wrong with it is added to `problems`."""
    lengths = {"max_seconds": "s", "max_device_hours": "h"}  # each with the unit of a bare number
    found: dict[str, Any] = {}
    for key, unit in lengths.items():
        try:
            found[key] = None if data[key] is None else read_seconds(data[key], unit)
        except ValueError as error:
            problems.append(f"hydra.sweeper.{key} {error}")
    if found.get("max_device_hours") is not None:
        found["max_device_hours"] /= HOUR_SECONDS
    for key, least in (("n_trials", 1), ("stagnation", 1), ("max_failures", 0), ("stagnation_tolerance", 0)):
        found[key] = data[key]
        if data[key] is not None and not data[key] >= least:
            problems.append(f"hydra.sweeper.{key} must be at least {least}, got {data[key]}")
    found["max_failure_rate"] = data["max_failure_rate"]
    if not 0 <= data["max_failure_rate"] <= 1:
        problems.append(f"hydra.sweeper.max_failure_rate must be from 0 to 1, got {data['max_failure_rate']}")
    return StopRules(**found, fail_fast=data["fail_fast"])


def _study_folder(asked: Any, folder: StudyFolder) -> Path | None:
    """Return the folder of a study that is named by its path, or by its name where it is beside this one."""
    if asked is None:
        return None
    path = Path(str(asked))
    beside = folder.path.parent / path
    return beside if not _is_there(path, Path.is_dir) and _is_there(beside, Path.is_dir) else path


def _is_there(path: Path, test: Callable[[Path], bool]) -> bool:
    """Tell whether a file or folder is there; a name that is longer than names can be is not."""
    try:
        return test(path)
    except OSError:
        return False


def _count(key: str, least: int, data: Mapping[str, Any], app: Mapping[str, Any], problems: list[str]) -> int:
    """Return how often to measure: as the sweeper is told, else as the app is, else the least."""
    asked: Any = data.get(key)
    others: Any = app.get(key)
    if asked is None:
        return max(int(others), least) if _is_whole(others) else least
    if not _is_whole(asked) or asked < least:
        problems.append(
            f"hydra.sweeper.{key} must be a whole number of at least {least}, or null for the app's "
            f"measure.{key}, got {asked!r}"
        )
        return least
    return int(asked)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def _objectives(named: Mapping[str, Any], direction: Any, problems: list[str]) -> dict[str, Direction]:
    """Return name to direction; names are made up where only `direction` is given."""
    directions = direction if isinstance(direction, list) else [direction]
    if named:  # and what is typed in vain is held to what it may be all the same
        problems += [
            f"hydra.sweeper.direction must be minimize or maximize, got {one!r}"
            for one in directions
            if str(getattr(one, "name", one)).lower() not in set(Direction)
        ]
    else:
        names = ["value"] if len(directions) == 1 else [f"value_{index}" for index in range(len(directions))]
        named = dict(zip(names, directions, strict=True))
    found = {}
    for name, text in named.items():
        word = str(getattr(text, "name", text)).lower()
        if word in set(Direction):
            found[str(name)] = Direction(word)
        else:
            problems.append(f"objective {name} must be minimize or maximize, got {text!r}")
    if not found and not problems:
        problems.append("hydra.sweeper.direction names no objective: minimize, maximize, or a list of these")
    return found


def _constraints(raw: Mapping[str, Any], problems: list[str]) -> dict[str, Constraint]:
    """Return name to demand, without those whose bound is null."""
    found = {}
    for name, node in raw.items():
        where = f"hydra.sweeper.constraints.{name}"
        if node is None:
            continue
        if not isinstance(node, Mapping) or not isinstance(node.get("measure"), str):
            problems.append(f"{where} must be {{measure: name, at_most: number}}, got {node!r}")
            continue
        bounds = {key: node[key] for key in ("at_most", "at_least") if key in node}
        unknown = set(node) - {"measure", *bounds}
        if len(bounds) != 1 or unknown:
            problems.append(f"{where} needs a measure and one of at_most and at_least, got {dict(node)!r}")
            continue
        ((key, bound),) = bounds.items()
        if bound is None:
            continue
        if bound == "baseline":
            # The bound is filled in when the baseline is measured; until then the direction must be known.
            found[name] = Constraint(measure=node["measure"], of_baseline=True, upper=key == "at_most")
        elif isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound):
            found[name] = Constraint(measure=node["measure"], bound=float(bound), upper=key == "at_most")
        else:
            problems.append(f"{where}.{key} must be a number, baseline or null, got {bound!r}")
    return found


def _storage(asked: Any, folder: StudyFolder, problems: list[str]) -> str | None:
    if asked is None:
        return None
    if asked == "auto":
        return f"{_SQLITE}{folder.storage}"
    if isinstance(asked, str) and "://" in asked:
        problem = problem_of(asked)
        if problem is not None:
            shown = masked_text(asked)
            problems.append(
                f"hydra.sweeper.storage={shown} {problem}; sqlite:///study.db is one that can be used"
            )
        return asked
    problems.append(
        f"hydra.sweeper.storage must be auto, null or a URL such as sqlite:///study.db, got {asked!r}"
    )
    return None
