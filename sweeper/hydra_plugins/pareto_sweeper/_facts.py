"""What a study sets out to do, as study.json says it; and what must stay as it is for it to be continued."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf
from optuna.distributions import distribution_to_json

from memsweep.record.study import Constraint, Study
from memsweep.search.parameter import Condition, Fixed, Parameter
from memsweep.search.space import GROUP, Conditional, Space
from memsweep.search.storage import file_of
from memsweep.secret import masked, masked_override

from ._app import App
from ._folder import typed
from ._settings import SweepSettings

_MEASURING = ("memsweep", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "bitsandbytes")
"""Packages whose version can change what a trial of techniques measures."""

_PACKAGES = (
    "memsweep",
    "hydra-core",
    "omegaconf",
    "optuna",
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
)
_CONTEXT = ("trainer", "model", "dataset", "reward", "measure", "budget", "launch")
_FREE = ("tracking", "measure.repeats", "measure.front_repeats")
"""Settings of an app with techniques that no trial's figures depend on."""

_PATHS = ("dataset.path", "model.path")
_PEEK_BYTES = 1 << 20


def study_of(
    settings: SweepSettings, space: Space, app: App, config: DictConfig, excluded: Sequence[str], program: str
) -> Study:
    """Return what the study sets out to do.

    Args:
        settings: What was asked for.
        space: What is searched.
        app: Knows the techniques.
        config: Hydra's composed config.
        excluded: What `hydra.sweeper.exclude` rules out, in words.
        program: What repeats a trial, before its overrides.
    """
    parameters: dict[str, Any] = {}
    for parameter in space.parameters:
        shown = _domain(parameter)
        if parameter.conditions:
            shown["only_with"] = [condition.text for condition in parameter.conditions]
        parameters[parameter.name] = shown
    searched = {parameter.key for parameter in space.parameters}
    choices = config.hydra.runtime.choices
    context = {
        group: str(choices[group])
        for group in _CONTEXT
        if choices.get(group) is not None and group not in searched
    }
    if OmegaConf.select(config, "trainer.completion_tokens") is None:
        context.pop("reward", None)  # nothing is generated, so nothing is scored
    return Study(
        name=settings.study_name,
        created=datetime.now(UTC).isoformat(timespec="microseconds"),
        command=shlex.join(["python", script(), *map(masked_override, sys.argv[1:])]),
        objectives=settings.objectives,
        constraints=settings.constraints,
        parameters=parameters,
        fixed=space.fixed,
        sampler={**settings.sampler, "seed": settings.sampler.get("seed") or settings.seed},
        n_trials=settings.n_trials,
        context=context if app.techniques else {},
        versions={"python": platform.python_version(), **_versions(_PACKAGES)},
        fingerprint=_fingerprint(settings, space, app, config, excluded),
        distributions={p.name: distribution_to_json(p.distribution) for p in space.parameters},
        typed=typed(config),
        program=program,
        has_storage=settings.storage is not None and file_of(settings.storage) == settings.folder.storage,
    )


def script() -> str:
    """Return the script that runs, as short as it can be typed from here."""
    path = Path(sys.argv[0]).absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def repeating(config: DictConfig, hydra_context: HydraContext, space: Space) -> str:
    """Return what to type after `python` before a trial's overrides, to run it alone.

    A file that the trial names may choose another sweeper, installed or not, and ask for a sweep by itself.
    """
    # Unresolved: what is typed may refer to what only a trial has, as ${hydra.job.num}.
    by_hand: Any = OmegaConf.to_container(config.hydra.overrides, resolve=False)
    words = [text for text in by_hand["hydra"] if text.startswith("hydra/sweeper=")]
    parsed = OverridesParser.create().parse_overrides(by_hand["task"])
    presets = [str(one.input_line) for one in parsed if not one.is_sweep_override()]
    if (words or presets) and not space.techniques:  # an app of ours has no such files, and composes slowly
        alone = hydra_context.config_loader.load_configuration(
            config.hydra.job.config_name, [*presets, *words], RunMode.RUN
        )
        words += ["hydra.mode=RUN"] if alone.hydra.mode is RunMode.MULTIRUN else []
    return shlex.join([script(), *words])


def _fingerprint(
    settings: SweepSettings, space: Space, app: App, config: DictConfig, excluded: Sequence[str]
) -> dict[str, Any]:
    """Return the study's fingerprint; `memsweep.study.fingerprint` says what is in it."""
    composed: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, _own_keys(config)), resolve=False)
    flat = dict(_flat(masked(composed)))
    if app.techniques:
        flat = {key: value for key, value in flat.items() if not _is_below(key, _FREE)}
    given = {
        entry.override.text: " and ".join(condition.text for condition in entry.conditions)
        for entry in space.entries
        if isinstance(entry, Conditional)
    }
    versions = _versions(_MEASURING) if app.techniques else {}
    choices: Any = OmegaConf.to_container(config.hydra.runtime.choices, resolve=False)
    return {
        "objectives": [[name, direction.value] for name, direction in settings.objectives.items()],
        "constraints": {name: _demand(one) for name, one in settings.constraints.items()},
        "space": {parameter.name: _node(parameter) for parameter in space.parameters},
        "given": given,
        "excluded": list(excluded),
        "config": flat,
        "choices": {key: value for key, value in choices.items() if not str(key).startswith("hydra/")},
        "options": dict(_options(space, app)),
        "data": dict(_data(flat)) if app.techniques else {},
        "versions": {"python": ".".join(platform.python_version_tuple()[:2]), **versions},
        # Not compared: with these alike, what was drawn beside the sampler is drawn again.
        "plan": {
            "repeats": settings.repeats,
            "front_repeats": settings.front_repeats,
            "n_jobs": settings.n_jobs,
        },
    }


def _own_keys(config: DictConfig) -> list[str]:
    return [str(key) for key in config if key != "hydra"]


def _flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _stored(value)


def _stored(value: Any) -> Any:
    """Return a setting as JSON gives it back: what JSON does not have is its text."""
    if isinstance(value, list | tuple):
        return [_stored(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _stored(item) for key, item in value.items()}
    is_data = (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
    )
    return value if is_data else str(value)


def _is_below(key: str, nodes: Sequence[str]) -> bool:
    return any(key == node or key.startswith(f"{node}.") for node in nodes)


def _demand(constraint: Constraint) -> str:
    bound = "the baseline's" if constraint.of_baseline else f"{constraint.bound!r}"
    return f"{constraint.measure} {'at most' if constraint.upper else 'at least'} {bound}"


def _domain(parameter: Parameter) -> dict[str, Any]:
    if parameter.labels:
        return {"values": list(parameter.labels)}
    return {key: getattr(parameter.distribution, key, None) for key in ("low", "high", "log")}


def _node(parameter: Parameter) -> dict[str, Any]:
    node = {"key": parameter.key, **_domain(parameter)}
    if parameter.conditions:
        node["when"] = {condition.parent: _among(condition) for condition in parameter.conditions}
    return node


def _among(condition: Condition) -> list[str] | str:
    return sorted(condition.among) if condition.among else condition.text


def _options(space: Space, app: App) -> Iterator[tuple[str, str]]:
    """Yield each option that a trial may have, with a hash of what it sets."""
    chosen = [(f"{GROUP}{technique}", app.option_of(technique)) for technique in sorted(app.techniques)]
    for entry in space.entries:
        one = entry.override if isinstance(entry, Conditional) else entry
        values = (one.value,) if isinstance(one, Fixed) else one.values
        chosen += [(one.key, str(value)) for value in values]
    for key, option in dict.fromkeys(chosen):
        settings = app.settings_of(key, option)
        if settings is not None:
            text = json.dumps(settings, sort_keys=True, default=dict)
            yield f"{key}={option}", hashlib.sha256(text.encode()).hexdigest()[:16]


def _data(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what local files hold that a trial reads: size, and a hash of both ends."""
    for key in _PATHS:
        path = Path(str(config.get(key)))
        try:
            if config.get(key) is not None and path.exists():
                yield key, _contents(path)
        except OSError:
            continue


def _contents(path: Path) -> str:
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.relative_to(path)} {size}\n".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(_PEEK_BYTES))
            stream.seek(max(0, size - _PEEK_BYTES))
            digest.update(stream.read(_PEEK_BYTES))
    return digest.hexdigest()[:16]


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
