"""What the sweeper knows of the app: nothing, or that its choices are techniques with rules.

Any Hydra app can be swept.  One whose config groups are the techniques of `memsweep.technique` gains three
things: combinations that cannot run are never launched, parameters of an option are asked only with that
option, and combinations that ask for the same settings are measured once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from memsweep.config.filled import from_mapping
from memsweep.config.groups import technique_nodes
from memsweep.config.schema import ModelConfig, TrialConfig, trial_config
from memsweep.data.ready import require_data
from memsweep.errors import ConfigError
from memsweep.machine import Device
from memsweep.model.path import require_model
from memsweep.search.space import GROUP, technique_of
from memsweep.search.verdict import Request, Verdict
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.compatibility import Circumstances, changes, circumstances_here, violations
from memsweep.technique.option import BASELINE
from memsweep.technique.rule import ARGUMENT
from memsweep.technique.settings import doubly_set, merge, requested_hash

from ._folder import known_to_hydra
from ._groups import groups_of

_NEEDED = {entry.name for entry in fields(TrialConfig) if entry.default is MISSING}
"""What every config of a trial of memsweep's has."""


Values = Mapping[str, Sequence[Any]]
NO_VALUES: Values = MappingProxyType({})


class App(Protocol):
    """What is asked of an app."""

    techniques: frozenset[str]

    def judge(self, request: Request) -> Verdict:
        """Return what `request` comes to."""

    def require_meant(self, composed: DictConfig, values: Values = NO_VALUES) -> None:
        """Raise if a trial would refuse its config, whatever it chooses.

        Args:
            composed: A trial's whole config; changed: it becomes that of job 0.
            values: Keys of it to what else they will be.

        Raises:
            ConfigError: All problems at once.
        """

    def option_of(self, technique: str) -> str:
        """Return the option of a technique where nothing is typed."""

    def parameters_of(self, technique: str, option: str) -> Mapping[str, tuple[Any, ...]]:
        """Return the parameters of an option, each with the values that a search tries.

        Raises:
            ConfigError: If there is no such option.
        """

    def settings_of(self, key: str, option: str) -> Mapping[str, Any] | None:
        """Return what an option sets, its prose left out; None where the key is no technique's group."""


class PlainApp:
    """An app without techniques: every combination may run."""

    techniques: frozenset[str] = frozenset()

    def judge(self, request: Request) -> Verdict:
        """Return a verdict without objections."""
        text = json.dumps(request.rest, separators=(",", ":"))
        return Verdict(requested_hash=hashlib.sha256(text.encode()).hexdigest()[:16])

    def require_meant(self, composed: DictConfig, values: Values = NO_VALUES) -> None:
        """Ask nothing: what such an app wants of its config, only the app knows."""

    def option_of(self, technique: str) -> str:
        """Never called: there are no techniques."""
        raise ConfigError(f"this app has no technique {technique!r}")

    def parameters_of(self, technique: str, option: str) -> Mapping[str, tuple[Any, ...]]:
        """Never called: there are no techniques."""
        raise ConfigError(f"this app has no technique={option!r} of {technique!r}")

    def settings_of(self, key: str, option: str) -> None:
        """Return nothing: no key is a technique's."""


class TechniqueApp:
    """An app whose choices are techniques.

    Args:
        catalogue: The techniques.
        composed: The config composed from everything that is not searched, as plain data.
    """

    def __init__(self, catalogue: Catalogue, composed: Mapping[str, Any]) -> None:
        self.techniques = frozenset(catalogue.techniques)
        self._catalogue = catalogue
        self._composed = composed
        self._options: dict[str, str] = {}
        self._parameters: dict[str, dict[str, Any]] = {}
        for technique, values in technique_nodes(composed.get("technique")).items():
            self._options[technique] = str(values.pop("option", BASELINE))
            self._parameters[technique] = values

    def judge(self, request: Request) -> Verdict:
        """Return the choice that `request` completes, the rules it breaks, and its hash."""
        options = {**self._options, **request.options}
        parameters: dict[str, Any] = {}
        for technique, values in self._parameters.items():
            # Composed values belong to the composed option; another option has its own.  A value typed for
            # an option that is searched is in the composed config too, where another option stands.
            if options[technique] == self._options[technique]:
                declared = self.parameters_of(technique, options[technique])
                is_searched = technique in request.options
                parameters.update(
                    {
                        f"technique.{technique}.{k}": v
                        for k, v in values.items()
                        if k in declared or not is_searched
                    }
                )
        parameters.update(request.parameters)
        here = self._circumstances(request)
        chosen = self._catalogue.choose(options, parameters)
        choice = {technique: option.option for technique, option in chosen.items()}
        found = changes(chosen, self._catalogue)
        broken = violations(chosen, here, self._catalogue)
        broken += doubly_set(chosen, here.trainer, here.arguments or {}, self._catalogue)
        if broken:
            return Verdict(choice=choice, changes=found, violations=broken)
        try:
            settings = merge(chosen, here.trainer, self._catalogue)
        except ConfigError as error:  # two owners of one key
            return Verdict(choice=choice, changes=found, violations=tuple(str(error).splitlines()))
        return Verdict(choice=choice, changes=found, requested_hash=requested_hash(settings, request.rest))

    def _circumstances(self, request: Request) -> Circumstances:
        """Return trainer, machine, numbers and arguments: as composed, but for what is given otherwise."""

        def fact(group: str, key: str, field: str | None = None) -> Any:
            composed = self._composed.get(group) or {}
            return request.groups.get(f"{group}.{key}", request.groups.get(field or "", composed.get(key)))

        given = {k.removeprefix(ARGUMENT): v for k, v in request.groups.items() if k.startswith(ARGUMENT)}
        trainer = str(fact("trainer", "name", "trainer"))
        is_composed = trainer == str((self._composed.get("trainer") or {}).get("name"))
        numbers = {
            # Each trainer has a batch of its own, which only a trial of it composes.
            "batch": fact("trainer", "batch") if is_composed else request.groups.get("trainer.batch"),
            "measure.evaluation_examples": fact("measure", "evaluation_examples"),
        }
        return replace(
            _machine(
                self._catalogue,
                trainer,
                _device(fact("launch", "device") or Device.AUTO),
                simulates_devices=bool(fact("launch", "simulates_devices")),
            ),
            numbers={name: number for name, number in numbers.items() if number is not None},
            arguments={**(fact("trainer", "arguments") or {}), **given},
        )

    def require_meant(self, composed: DictConfig, values: Values = NO_VALUES) -> None:
        """Make types of the config, as a trial does, and look at its data, if it is one of memsweep's."""
        keys = [str(key) for key in composed if key != "hydra"]
        if not set(keys) >= _NEEDED:
            return
        with read_write(composed.hydra), open_dict(composed.hydra):
            composed.hydra.job.num, composed.hydra.job.id = 0, "0"
        with known_to_hydra(composed):
            # As the trial itself does: config by config, since a study's own may hold what no trial has.
            plain = {
                key: OmegaConf.to_container(composed._get_node(key), resolve=True, throw_on_missing=True)
                if OmegaConf.is_config(composed._get_node(key))
                else composed[key]
                for key in keys
            }
        asked = trial_config(plain)
        self._catalogue.require_trainer(asked.trainer.name)
        require_data(asked.dataset, asked.trainer.data)
        problems: dict[str, None] = {}
        for key, others in values.items():
            for other in others:
                try:
                    trial_config(_having(plain, key.split("."), other))
                except ConfigError as error:
                    problems.update(dict.fromkeys(str(error).splitlines()))
        if problems:
            raise ConfigError("\n".join(problems))

    def option_of(self, technique: str) -> str:
        """Return the composed option."""
        return self._options.get(technique, BASELINE)

    def parameters_of(self, technique: str, option: str) -> Mapping[str, tuple[Any, ...]]:
        """Return the parameters that the option's file declares."""
        declared = self._catalogue.option(technique, option).parameters
        return {name: parameter.search for name, parameter in declared.items()}

    def settings_of(self, key: str, option: str) -> Mapping[str, Any] | None:
        """Return settings and defaults of the option's file."""
        technique = technique_of(key, self.techniques)
        if technique is None or not key.startswith(GROUP):
            return None
        found = self._catalogue.option(technique, option)
        return {"all": found.settings, "by_trainer": found.settings_by_trainer, "defaults": found.defaults()}


def _having(node: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return a config with another value at a path; as it is where there is no such path."""
    name, *rest = path
    inner = node.get(name)
    if not rest and name in node:
        return {**node, name: value}
    return {**node, name: _having(inner, rest, value)} if rest and isinstance(inner, Mapping) else dict(node)


def _device(asked: Any) -> Device:
    """Return what a trial is to compute on.

    Raises:
        ConfigError: If there is no such kind of device.
    """
    try:
        return Device(asked)
    except ValueError as error:
        raise ConfigError(f"launch.device must be one of {', '.join(Device)}, got {asked!r}") from error


def app_of(config: DictConfig, loader: ConfigLoader) -> App:
    """Return what is known of the app that `config` was composed for.

    Its choices are techniques if its config has a node for each technique group, beside a trainer.

    Raises:
        ConfigError: If the model's path, where it is not searched, holds no model.
    """
    groups = set(groups_of(loader, "technique"))
    if not groups or "technique" not in config or "trainer" not in config:
        return PlainApp()
    technique_nodes(config["technique"])  # raises unless each technique has a node
    composed = {
        key: OmegaConf.to_container(config[key], resolve=True)
        for key in ("technique", "trainer", "measure", "launch")
        if key in config
    }
    catalogue = read_catalogue(conf_folder())
    if groups != set(catalogue.techniques):
        return PlainApp()
    if OmegaConf.select(config, "model.path") is not None:
        model: Any = OmegaConf.to_container(config["model"], resolve=True)
        require_model(from_mapping(ModelConfig, model, "model"))
    return TechniqueApp(catalogue, composed)


@lru_cache(maxsize=16)
def _machine(catalogue: Catalogue, trainer: str, asked: Device, *, simulates_devices: bool) -> Circumstances:
    return circumstances_here(trainer, asked, catalogue, simulates_devices=simulates_devices)
