"""Trials that are not the sampler's: the baseline, and those that a file asks for.

They need not be inside the space: what is typed in a file is run and recorded, whatever is searched.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from memsweep.complaint import complaint
from memsweep.config.groups import require_groups
from memsweep.errors import ConfigError
from memsweep.search.ask import Asker
from memsweep.search.grammar import label_text
from memsweep.search.match import same_value
from memsweep.search.parameter import Fixed, Parameter
from memsweep.search.space import GROUP, Cell, Space, technique_of
from memsweep.technique.option import BASELINE

from ._app import App
from ._composition import compose
from ._keys import key_of_entry
from ._overrides import fixed


def baseline_cell(space: Space) -> Cell:
    """Return the cell that the others are compared with.

    Every searched technique is at its baseline, which the space need not contain; every other searched key
    has the first of its values.
    """
    return space.cell(_baseline_labels(space))


def first_cell(asker: Asker) -> Cell:
    """Return the first trial's cell: the baseline.

    Where there are no techniques it is one cell among many, whose values happen to be named first; if it is
    excluded, one near it does as well.
    """
    cell = baseline_cell(asker.space)
    return cell if asker.space.techniques else asker.legal.mended(cell) or cell


def _baseline_labels(space: Space) -> dict[str, str | None]:
    return {
        parameter.name: BASELINE if _is_technique(parameter.key, space) else parameter.first
        for parameter in space.parameters
    }


def _is_technique(key: str, space: Space) -> bool:
    return key.startswith(GROUP) and technique_of(key, space.techniques) is not None


def read_trials(path: Path, space: Space, loader: ConfigLoader) -> list[tuple[Cell, Space]]:
    """Return the trials that a file asks for, each a cell, in a space with the trial's own fixed overrides.

    A text file has one trial a line, as it would be typed after `python train.py`; `#` begins a comment.
    A YAML or JSON file holds a list, of such lines, of lists of overrides, or of mappings of key to value.
    What a trial does not name is as in the baseline.

    Args:
        path: The file.
        space: The search space.
        loader: Knows the config groups.

    Raises:
        ConfigError: If something in it cannot be read; the message names the trial.
    """
    found = []
    parser = OverridesParser.create(config_loader=loader)
    for number, texts in enumerate(_texts(path), start=1):
        try:
            overrides = parser.parse_overrides(texts)
        except HydraException as error:
            raise ConfigError(f"{path}, trial {number}: {error}") from error
        for override in overrides:
            if override.is_sweep_override() or override.is_hydra_override():
                raise ConfigError(
                    f"{path}, trial {number}: {override.input_line} is not one value of the app's"
                )
        try:
            require_groups(overrides, space.techniques)
            found.append(_placed(overrides, space))
        except ConfigError as error:
            raise ConfigError(f"{path}, trial {number}: {error}") from error
    return found


def _placed(overrides: Iterable[Override], space: Space) -> tuple[Cell, Space]:
    labels = _baseline_labels(space)
    extra: dict[str, Fixed] = {}
    named: dict[str, list[Parameter]] = {}
    for override in overrides:
        entry = fixed(override)
        matching = [parameter for parameter in space.parameters if parameter.key == entry.key]
        named |= {entry.key: matching} if matching else {}
        for parameter in matching:
            labels[parameter.name] = _label(parameter, override)
        if not matching:
            extra[entry.key] = entry
    cell = space.cell(labels)
    exist = space.labels(cell)
    problems = [
        f"{key} exists only with {' or '.join(map(_demands, matching))}; choose that too, or drop {key}"
        for key, matching in named.items()
        if all(exist[one.name] is None for one in matching)
    ]
    if problems:
        raise ConfigError("; ".join(problems))
    if not extra:
        return cell, space
    kept = [entry for entry in space.entries if key_of_entry(entry) not in extra]
    return cell, Space(entries=(*kept, *extra.values()), techniques=space.techniques)


def _demands(parameter: Parameter) -> str:
    return " and ".join(condition.text for condition in parameter.conditions)


def _label(parameter: Parameter, override: Override) -> str:
    """Return the parameter's own label for a value, so that the sampler knows it; else the value's text."""
    value = override.value()
    for label, known in zip(parameter.labels, parameter.values, strict=True):
        if same_value(known, value):
            return label
    return label_text(override._value)


def require_meant(
    path: Path, trials: Sequence[tuple[Cell, Space]], app: App, config: DictConfig, loader: ConfigLoader
) -> None:
    """Raise if a trial that a file asks for could not be run by anybody: a key or an option is missing, say.

    That a rule refuses one is no such fault: it is recorded like any other trial.

    Args:
        path: The file.
        trials: What `read_trials` returned.
        app: Knows what its config must hold.
        config: Hydra's composed config.
        loader: Composes.

    Raises:
        ConfigError: If so; the message names the trial.
    """
    for number, (cell, space) in enumerate(trials, start=1):
        overrides = list(space.overrides(cell))
        try:
            app.require_meant(compose(loader, config, overrides))
        except (ConfigError, HydraException, OmegaConfBaseException) as error:
            raise ConfigError(f"{path}, trial {number}: {complaint(error, overrides)}") from error


def _texts(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as text: {error}") from error
    if path.suffix not in (".yaml", ".yml", ".json"):
        return [words for line in text.splitlines() if (words := _words(line, path))]
    try:
        data = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except Exception as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, list):
        raise ConfigError(f"{path} must hold a list of trials, got {type(data).__name__}")
    return [_overrides_of(item, path) for item in data]


def _overrides_of(item: Any, path: Path) -> list[str]:
    if isinstance(item, str):
        return _words(item, path)
    if isinstance(item, Mapping):
        return [f"{key}={label_text(value)}" for key, value in item.items()]
    if isinstance(item, list) and all(isinstance(word, str) for word in item):
        return [str(word) for word in item]
    raise ConfigError(f"{path}: a trial is a line, a list of overrides or a mapping, got {item!r}")


def _words(line: str, path: Path) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise ConfigError(f"{path}: {line!r}: {error}") from error
