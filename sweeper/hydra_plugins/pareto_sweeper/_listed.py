"""Every cell that a config searches, with what the rules make of it: data for programs that compare configs.

Nothing is asked of a sampler, and no folder is settled: only what decides of the space is read.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig, OmegaConf

from memsweep.errors import ConfigError
from memsweep.search.legal import LegalCells
from memsweep.search.parameter import Parameter

from ._app import app_of
from ._build import Asked, Searched, build_space
from ._folder import known_to_hydra
from ._official import translated
from ._typed import in_use

_READ = ("params", "search_space", "when", "exclude", "option_parameters", "seed")


def listed_cells(
    config: DictConfig, loader: ConfigLoader, arguments: Sequence[str], limit: int
) -> dict[str, Any]:
    """Return the space of a config, as JSON-ready data.

    Args:
        config: Hydra's composed config.
        loader: Knows the config groups.
        arguments: The overrides that the app was given, without those of `hydra.`.
        limit: A space of more cells than this is not listed.

    Returns:
        `parameters`: each with its `key`, its `values` (or the `low`, `high` and `log` of an interval) and
        `only_with`.  `n_cells`, and `n_legal` of them: None where there is no number, or none is known.
        `sentences`: every rule that refuses something.  `cells`, None where they are not listed: for each a
        list of one index into its values for every parameter (None where it does not exist), and a list of
        indices into `sentences`, empty where it may run.

    Raises:
        ConfigError: If something there cannot be meant.
    """
    with known_to_hydra(config):
        space, judge = _searched(config, loader, arguments)
        legal = LegalCells(space, judge, random.Random(0))
        n_cells = space.n_cells()
        found: dict[str, Any] = {
            "parameters": [_parameter(parameter) for parameter in space.parameters],
            "n_cells": int(n_cells) if space.is_discrete else None,
            "n_legal": None,
            "cells": None,
        }
        if n_cells > limit:
            return {**found, "sentences": legal.refusals_alone()}
        sentences: dict[str, int] = {}
        listed: list[Any] = []
        for cell in space.cells():
            broken = [sentences.setdefault(text, len(sentences)) for text in legal.verdict(cell).violations]
            pairs = zip(space.parameters, cell, strict=True)
            at = [None if label is None else one.labels.index(label) for one, label in pairs]
            listed.append([at, broken])
    n_legal = sum(not broken for _, broken in listed)
    return {**found, "n_legal": n_legal, "cells": listed, "sentences": list(sentences)}


def _searched(config: DictConfig, loader: ConfigLoader, arguments: Sequence[str]) -> Searched:
    problems: list[str] = []
    node = config.hydra.sweeper
    data = translated({key: _plain(node.get(key)) for key in _READ}, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    counts = in_use(data["params"], data["when"] or {}, data["exclude"], list(arguments), config)
    asked = Asked(
        params=counts.params,
        all_params=data["params"],
        when=counts.when,
        exclude=counts.exclude,
        option_parameters=data["option_parameters"] == "searched",
    )
    return build_space(asked, list(arguments), app_of(config, loader), loader, config, seed=data["seed"])


def _parameter(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "key": parameter.key,
        "only_with": [condition.text for condition in parameter.conditions],
    }
    if parameter.labels:
        return {**found, "values": list(parameter.values)}
    bounds = {name: getattr(parameter.distribution, name, None) for name in ("low", "high", "log")}
    return {**found, **bounds}


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
