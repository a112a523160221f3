"""Which samplers there are: name to class, with the arguments it takes and those it is given.

To add one, add a row here and its name in config.py.  `grid` is no sampler of Optuna's: the space is listed
in its order (`ask.py`), because Optuna's stops a study by raising.  `auto` is `structured`, which needed the
fewest trials of all in benchmarks/replay, and tries every cell of a space that is no larger than n_trials.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optuna import samplers
from optuna.exceptions import ExperimentalWarning

from memsweep.errors import ConfigError
from memsweep.search.structured.beliefs import Prior
from memsweep.search.structured.sampler import Candidates, StructuredSampler

AUTO, GRID, STRUCTURED = "auto", "grid", "structured"
_PREFIX = "optuna.samplers."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One sampler.

    Attributes:
        kind: Optuna's class.
        arguments: What it is given unless the user says otherwise.
    """

    kind: type[samplers.BaseSampler]
    arguments: Mapping[str, Any] = field(default_factory=dict)


# Told that a trial failed, TPE asks for the same again; so failures for lack of memory are told as
# infeasible, and `multivariate` with `group` is what then needed the fewest trials of Optuna's samplers.
_TPE = {"multivariate": True, "group": True, "constant_liar": True, "warn_independent_sampling": False}

_SAMPLERS: Mapping[str, _Row] = {
    STRUCTURED: _Row(kind=StructuredSampler),
    "tpe": _Row(kind=samplers.TPESampler, arguments=_TPE),
    "nsgaii": _Row(kind=samplers.NSGAIISampler, arguments={"population_size": 16}),
    "nsgaiii": _Row(kind=samplers.NSGAIIISampler, arguments={"population_size": 16}),
    "gp": _Row(
        kind=samplers.GPSampler,
        arguments={"warn_independent_sampling": False},
    ),
    "qmc": _Row(
        kind=samplers.QMCSampler,
        arguments={"warn_independent_sampling": False, "warn_asynchronous_seeding": False},
    ),
    "random": _Row(kind=samplers.RandomSampler),
}

# Arguments that are objects or code, which a config cannot give.
_NOT_DATA = frozenset(
    {
        "after_trial_strategy",
        "candidates",
        "child_generation_strategy",
        "constraints_func",
        "crossover",
        "elite_population_selection_strategy",
        "gamma",
        "independent_sampler",
        "mutation",
        "prior",
        "reference_points",
        "weights",
    }
)


_TYPES: Mapping[str, type] = {"int": int, "float": float, "bool": bool, "str": str}
"""Of arguments, as signatures write them."""


def sampler_name(asked: Mapping[str, Any]) -> str:
    """Return the name of the sampler asked for; for `auto`, of the one that it stands for.

    Args:
        asked: `name`, or `_target_` as the official plugin's files have it, and arguments.

    Raises:
        ConfigError: If there is no such sampler.
    """
    target = asked.get("_target_")
    names = {f"{_PREFIX}{row.kind.__name__}": name for name, row in _SAMPLERS.items()}
    names[f"{_PREFIX}GridSampler"] = names[f"{_PREFIX}BruteForceSampler"] = GRID
    name = str(asked.get("name")) if target is None else names.get(str(target), str(target))
    if name not in (AUTO, GRID) and name not in _SAMPLERS:
        raise ConfigError(
            f"hydra.sweeper.sampler must be one of {', '.join([AUTO, *_SAMPLERS, GRID])}, got {name!r}"
        )
    return STRUCTURED if name == AUTO else name


def make_sampler(
    asked: Mapping[str, Any], seed: int, candidates: Candidates, prior: Prior | None = None
) -> samplers.BaseSampler:
    """Return the sampler asked for; for `grid` a random one, which is never used.

    Args:
        asked: As for `sampler_name`.
        seed: Where `asked` has no seed of its own.
        candidates: What `structured` chooses among.
        prior: Predictions that `structured` corrects; None for none.

    Raises:
        ConfigError: If the sampler, or an argument of it, is not on offer.
    """
    name = sampler_name(asked)
    given = {key: value for key, value in asked.items() if key not in ("name", "_target_", "_convert_")}
    if given.get("seed") is None:
        given["seed"] = seed
    if name == GRID:
        return samplers.RandomSampler(seed=given["seed"])
    row = _SAMPLERS[name]
    allowed = [key for key in inspect.signature(row.kind).parameters if key not in _NOT_DATA]
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise ConfigError(
            f"hydra.sweeper.sampler={name} takes {', '.join(sorted(allowed))}; it does not take "
            f"{', '.join(unknown)}"
        )
    problems = list(_ill_typed(row.kind, given))
    if problems:
        raise ConfigError("\n".join(f"hydra.sweeper.sampler.{problem}" for problem in problems))
    with warnings.catch_warnings():
        # What Optuna calls experimental is pinned to one major version in pyproject.toml.
        warnings.simplefilter("ignore", ExperimentalWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            if name == STRUCTURED:
                given |= {"candidates": candidates, "prior": prior}
            return row.kind(**{**row.arguments, **given})
        except (TypeError, ValueError) as error:
            raise ConfigError(f"hydra.sweeper.sampler={name}: {error}") from error


def _ill_typed(kind: type[samplers.BaseSampler], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with arguments that Optuna would keep, and meet again in the midst of a study."""
    for name, value in given.items():
        asked = [word.strip() for word in str(inspect.signature(kind).parameters[name].annotation).split("|")]
        types = [_TYPES[word] for word in asked if word in _TYPES]
        if not types or (value is None and "None" in asked):
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        wanted = " or ".join(one.__name__ for one in types)
        if not any(is_number if one is float else type(value) is one for one in types):
            yield f"{name} must be {wanted}, got {value!r}"
        elif is_number and not 0 <= value < math.inf:
            yield f"{name} must be 0 or more, got {value!r}"


def reseed(sampler: samplers.BaseSampler, seed: int, draw: int) -> None:
    """Have a sampler, and those that it asks in turn, draw what follows from these two numbers.

    Optuna's own `reseed_rng` takes no seed.  What `qmc` draws is a sequence, whose place follows from the
    trials that there are: it is left as it is.

    Args:
        sampler: Of `make_sampler`.
        seed: The study's.
        draw: How many proposals it was asked for before.
    """
    _reseed(sampler, int.from_bytes(hashlib.sha256(f"{seed} {draw}".encode()).digest()[:4]))


def _reseed(sampler: samplers.BaseSampler, number: int) -> None:
    if isinstance(sampler, StructuredSampler):
        sampler.reseed(number)
        return
    for part in vars(sampler).values():
        if isinstance(part, samplers.BaseSampler):
            _reseed(part, number)
        elif isinstance(state := getattr(part, "rng", None), np.random.RandomState):
            state.seed(number)
