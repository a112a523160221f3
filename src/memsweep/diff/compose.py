"""The presets of one side composed, in a process of its own.

    python -P compose.py < request.json

A side is another version of the program, so `memsweep` is that side's here, whatever it is in the process
that asked (`snapshot` sets the path).  It is therefore run as a script, imports nothing of its own package,
and what another version lacks is told, not fatal.  It answers in lines of JSON: one for each preset as it is
done, and all of them in the last.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memsweep.technique.catalogue import Catalogue
    from memsweep.technique.option import Option
    from memsweep.technique.rule import Rule

PLUGINS, PLUGIN = "hydra_plugins", "pareto_sweeper"
_OF_HYDRA = ("sweeper", "launcher", "mode")
"""What of Hydra's own config decides of a study; the rest is how it is logged, and help."""

_MICRO, _ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"


class Presets:
    """Everything that a conf folder holds, made known to Hydra.

    Args:
        conf: The folder.
        limit: Search spaces of more cells than this are not listed.
    """

    def __init__(self, conf: Path, limit: int) -> None:
        from hydra import initialize
        from hydra.core.global_hydra import GlobalHydra

        from memsweep.config.store import register

        self.catalogue = register(conf)
        initialize(version_base="1.3", config_path=None, job_name="train")
        hydra: Any = GlobalHydra.instance().hydra
        self._loader = hydra.config_loader
        self._limit = limit

    def composed(self, typed: Sequence[str], *, is_baseline: bool, resolve: bool) -> dict[str, Any]:
        """Return one preset, as JSON-ready data; only `error` where it does not compose.

        Args:
            typed: Overrides, as after `python train.py`.
            is_baseline: Every technique is at its baseline, whatever the preset or `typed` say.
            resolve: Whether values may be looked up that others or the environment hold.
        """
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode
        from omegaconf import OmegaConf

        overrides = list(typed)
        if is_baseline:
            overrides = [
                text for text in typed if not text.lstrip("+~").startswith(("technique/", "technique."))
            ]
            overrides += [f"technique/{name}=baseline" for name in self.catalogue.techniques]
        try:
            config = self._loader.load_configuration(
                "config", overrides, run_mode=RunMode.MULTIRUN, from_shell=False
            )
            HydraConfig.instance().cfg = config  # for ${hydra:...}
            data: dict[str, Any] = {"config": _plain(config)}
            resolved = _resolved(config)
        except Exception as error:
            return {"error": told(error, overrides)}
        if resolve:
            data["resolved"] = resolved
        values = as_typed(resolved)
        data["typed"] = values if resolve or values is None else _as_written(values, data["config"])
        try:
            data["training"] = training(resolved if resolve else data["config"], self.catalogue)
        except Exception as error:
            data["untrained"] = told(error, overrides)
        chosen: Any = OmegaConf.to_container(config.hydra.runtime.choices)
        data["choices"] = {str(group): str(name) for group, name in chosen.items() if name is not None}
        if not is_baseline:  # what a baseline would search is nobody's question
            task: Any = OmegaConf.to_container(config.hydra.overrides.task)
            data["space"] = self._space(config, [str(text) for text in task])
        return data

    def options(self) -> dict[str, dict[str, Any]]:
        """Return `group/option` to its node and package, of every file that composed configs are made of."""
        from hydra.core.config_store import ConfigStore
        from omegaconf import OmegaConf

        found: dict[str, dict[str, Any]] = {}

        def walk(repo: Mapping[str, Any], group: str) -> None:
            for name, value in repo.items():
                path = f"{group}/{name}" if group else str(name)
                if isinstance(value, dict):
                    if path != "hydra":
                        walk(value, path)
                elif group:
                    node = OmegaConf.to_container(value.node, resolve=False)
                    package = value.package or group.replace("/", ".")
                    found[path.removesuffix(".yaml")] = {"package": package, "node": node}

        walk(ConfigStore.instance().repo, "")
        return found

    def _space(self, config: Any, arguments: list[str]) -> dict[str, Any]:
        from hydra.utils import get_class

        target = str(config.hydra.sweeper.get("_target_"))
        try:
            cells = getattr(get_class(target), "cells", None) if target.startswith(f"{PLUGINS}.") else None
            if cells is None:
                name = target.rpartition(".")[2]
                return {"error": f"{name} of this version does not tell what it searches"}
            return dict(cells(config, self._loader, arguments, self._limit))
        except Exception as error:
            return {"error": told(error, arguments)}


def training(config: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Return what a trial of a config trains with, seam by seam.

    Args:
        config: Composed, as plain data; interpolations may be unresolved.
        catalogue: The techniques.

    Raises:
        ConfigError: If two options set one key, or the choice names what there is not.
    """
    from memsweep.config.groups import technique_nodes
    from memsweep.technique.choice import ChosenOption
    from memsweep.technique.settings import merge

    trainer, launch = dict(config["trainer"]), dict(config.get("launch") or {})
    choice = {
        technique: ChosenOption(option=str(node.pop("option", "baseline")), parameters=node)
        for technique, node in technique_nodes(config.get("technique")).items()
    }
    settings = asdict(merge(choice, str(trainer["name"]), catalogue))
    arguments = {**(trainer.get("arguments") or {}), **settings["trainer"]}
    return {
        "trainer": {**arguments, **_micro_batches(trainer.get("batch"), arguments)},
        "model": settings["model"],
        "adapter": settings["adapter"],
        "environment": {**(launch.get("environment") or {}), **settings["environment"]},
        "launch": settings["launch"],
    }


def _micro_batches(batch: Any, arguments: Mapping[str, Any]) -> dict[str, int]:
    """Return the micro-batch and how many make a step, of one process, as `trainers.arguments` has them."""
    micro = arguments.get(_MICRO, batch)
    if not isinstance(batch, int) or not isinstance(micro, int) or micro < 1 or batch % micro:
        return {}
    return {_MICRO: micro, _ACCUMULATION: batch // micro}


def facts(catalogue: Catalogue) -> dict[str, Any]:
    """Return `technique/option` to what its file says, without prose."""
    return {
        f"technique/{option.technique}/{option.name}": _facts(option)
        for technique in catalogue.techniques.values()
        for option in technique.options.values()
    }


def _facts(option: Option) -> dict[str, Any]:
    keep = ("default", "search", "minimum", "maximum")
    return {
        "parameters": {
            name: {key: getattr(parameter, key) for key in keep}
            for name, parameter in option.parameters.items()
        },
        "settings": dict(option.settings),
        "settings_by_trainer": dict(option.settings_by_trainer),
        "changes": sorted(option.changes),
        "needs": {name: value for name, value in asdict(option.needs).items() if name != "verified"},
        "trainers": None if option.support is None else sorted(option.support.allowed),
        "same_as": [asdict(equal) for equal in option.same_as],
        "rules": {rule_text(rule): True for rule in option.rules},
    }


def rule_text(rule: Rule) -> str:
    """Return a rule as one line: what it demands, and where."""
    parts = [
        " and ".join(condition.text({}).replace(" (None)", "") for condition in part.values())
        for part in rule.any_of
    ]
    text = f"{rule.kind.value} {' or '.join(parts)}"
    text += f", for {', '.join(rule.trainers)}" if rule.trainers else ""
    versions = [f"{package} {specifier}" for package, specifier in rule.versions.items()]
    return text + (f", with {', '.join(versions)}" if versions else "")


def told(error: BaseException, typed: Sequence[str] = ()) -> str:
    """Return what to tell of an error: for people where this version can, else its own words."""
    try:
        from memsweep.complaint import complaint

        text = complaint(error, typed)
    except Exception:
        text = str(error)
    if type(error).__module__ == "builtins" and not isinstance(error, ValueError | OSError):  # a bug there
        return f"its code raised {type(error).__name__}: {text}".splitlines()[0]
    return text or type(error).__name__


def _plain(config: Any) -> dict[str, Any]:
    """Return a config with its interpolations as they are written."""
    from omegaconf import OmegaConf

    data: Any = OmegaConf.to_container(config, resolve=False, enum_to_str=True)
    data["hydra"] = {name: data["hydra"][name] for name in _OF_HYDRA if name in data["hydra"]}
    return {str(key): value for key, value in data.items()}


def _resolved(config: Any) -> dict[str, Any]:
    """Return the app's part of a config with its values looked up, as far as that is possible."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    found: dict[str, Any] = {key: value for key, value in _plain(config).items() if key != "hydra"}
    for key in found:
        node = config._get_node(key)
        with contextlib.suppress(OmegaConfBaseException):  # it refers to what only a running trial has
            is_config = OmegaConf.is_config(node)
            found[key] = (
                OmegaConf.to_container(node, resolve=True, enum_to_str=True) if is_config else config[key]
            )
    return found


def as_typed(resolved: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a config as its types have it, with the defaults of what it leaves out; None if it has none."""
    from memsweep.config.schema import trial_config

    try:
        data = asdict(trial_config(resolved))
    except Exception:  # what a trial refuses may still be compared, leaf by leaf
        return None
    data.pop("technique", None)
    return data


def _as_written(typed: Any, written: Any) -> Any:
    """Return typed values without those that are looked up: an answer may be kept."""
    if isinstance(typed, Mapping) and isinstance(written, Mapping):
        return {key: _as_written(value, written.get(key)) for key, value in typed.items()}
    return written if "${" in json.dumps(written, default=str) else typed


def _no_other_plugin(folder: str | None) -> None:
    """Let Hydra find the plugin of this side only, wherever else one is installed."""
    if folder is None:
        return
    package: Any = importlib.import_module(PLUGINS)
    package.__path__ = [
        path for path in package.__path__ if Path(path) == Path(folder) or not (Path(path) / PLUGIN).is_dir()
    ]


def main() -> None:
    """Answer one request; whatever else writes to standard output goes to the log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(data: Mapping[str, Any]) -> None:
        print(json.dumps(data, default=str), file=answers, flush=True)

    request = json.load(sys.stdin)
    try:
        _no_other_plugin(request["plugins"])
        presets = Presets(Path(request["conf"]), request["limit"])
        entries = {}
        for number, job in enumerate(request["jobs"], start=1):
            entries[job["name"]] = presets.composed(
                job["overrides"], is_baseline=job["is_baseline"], resolve=request["resolve"]
            )
            answer({"done": number})
        rest = {"options": presets.options(), "facts": facts(presets.catalogue)}
        answer({"entries": entries, **rest})
    except Exception as error:
        answer({"failed": told(error)})


if __name__ == "__main__":
    main()
