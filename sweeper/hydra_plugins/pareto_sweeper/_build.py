"""From what was typed to the search space: which keys are searched, and when each of them exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig
from optuna.distributions import CategoricalDistribution

from memsweep.complaint import near
from memsweep.config.groups import require_groups
from memsweep.errors import ConfigError
from memsweep.search.exclusion import excluding
from memsweep.search.grammar import label_text, read_value
from memsweep.search.parameter import Condition, Fixed, Parameter
from memsweep.search.space import GROUP, NODE, Conditional, Entry, Space, technique_of
from memsweep.search.verdict import Judge

from ._app import App
from ._conditions import conditioned, read_exclusions
from ._groups import options_of
from ._keys import Keys
from ._overrides import fixed, key_of, searched
from ._typed import collect, expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What `hydra.sweeper` says of the space.

    Attributes:
        params: `hydra.sweeper.params`, as far as they are in use.
        all_params: All of them.
        when: `hydra.sweeper.when`.
        exclude: `hydra.sweeper.exclude`.
        option_parameters: Also search the parameters of searched options, over the values their files offer.
    """

    params: Mapping[str, Any]
    all_params: Mapping[str, Any] = field(default_factory=dict)
    when: Any = field(default_factory=dict)
    exclude: Any = None
    option_parameters: bool = False


class Searched(NamedTuple):
    """What is searched, and who judges of it."""

    space: Space
    judge: Judge


def build_space(
    asked: Asked,
    arguments: Sequence[str],
    app: App,
    loader: ConfigLoader,
    config: DictConfig,
    *,
    seed: int = 0,
) -> Searched:
    """Return the space that `hydra.sweeper` and the command line describe.

    Args:
        asked: What `hydra.sweeper` says.
        arguments: The command line's overrides; they win where both name a key.
        app: Knows which option has which parameters.
        loader: Knows the config groups.
        config: Hydra's composed config.
        seed: Decides the order where `shuffle` asks for one.

    Raises:
        ConfigError: If something typed cannot be meant; the message says what is on offer.
    """
    overrides = collect(asked.params, arguments, loader)
    require_groups(overrides, app.techniques)
    read = [searched(o, seed) if o.is_sweep_override() else fixed(o) for o in overrides]
    by_key = {entry.key: entry for entry in read}
    problems: list[str] = []
    for override, entry in zip(overrides, read, strict=True):
        problems += _missing_options(override, entry, loader)
    entries: list[Entry] = [_conditional(entry, by_key, app) for entry in read]
    if asked.option_parameters:
        entries.extend(_offered(by_key, app))
    keys = Keys(
        entries,
        expanded(asked.all_params, loader),
        (key_of(override) for override in OverridesParser.create().parse_overrides(list(arguments))),
        config,
        loader,
        lambda texts: loader.load_sweep_config(config, list(texts)),
    )
    found = conditioned(asked.when, entries, keys, problems)
    exclusions = read_exclusions(asked.exclude, keys, problems)
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    space = Space(entries=found.entries, techniques=app.techniques, left_out=found.left_out)
    return Searched(space, excluding(app.judge, exclusions, keys.lookup))


def _missing_options(override: Override, entry: Fixed | Parameter, loader: ConfigLoader) -> Iterator[str]:
    """Yield a sentence for each option that a config group is to have, and has not."""
    values = entry.values if isinstance(entry, Parameter) else (entry.value,)
    offered = options_of(loader, override.key_or_group)  # empty for a key that is no group
    if offered and isinstance(entry, Parameter) and not entry.labels:
        yield f"{entry.key} is a config group, and an interval no option; it has {', '.join(offered)}"
    for value in values:
        is_name = value is not None and not isinstance(value, list) and "/" not in str(value)
        if offered and is_name and str(value) not in offered:
            close = near(str(value), offered)
            yield f"{entry.key} has no option {value!r}{close}; it has {', '.join(offered)}"


def _conditional(entry: Fixed | Parameter, by_key: Mapping[str, Fixed | Parameter], app: App) -> Entry:
    """Return `entry`, tied to the options that declare it if it is a parameter of a technique."""
    technique = technique_of(entry.key, app.techniques)
    if technique is None or not entry.key.startswith(NODE):
        return entry
    name = entry.key.removeprefix(f"{NODE}{technique}.")
    group = by_key.get(f"{GROUP}{technique}")
    if isinstance(group, Parameter):
        among = frozenset(
            label for label in group.labels if name in app.parameters_of(technique, str(group.value(label)))
        )
        _require_declared(entry.key, technique, group.labels, bool(among), name)
        if isinstance(entry, Parameter):
            return replace(entry, conditions=(Condition(parent=group.name, among=among),))
        return Conditional(override=entry, conditions=(Condition(parent=group.name, among=among),))
    option = app.option_of(technique) if group is None else str(group.value)
    _require_declared(entry.key, technique, (option,), name in app.parameters_of(technique, option), name)
    return entry


def _require_declared(key: str, technique: str, options: Sequence[str], declared: bool, name: str) -> None:
    if not declared:
        raise ConfigError(
            f"{key}: {technique}={' and '.join(options)} has no parameter {name!r}; choose an option that "
            f"has it with {GROUP}{technique}=...; the files in conf/{GROUP}{technique} list them"
        )


def _offered(by_key: Mapping[str, Fixed | Parameter], app: App) -> list[Parameter]:
    """Return a parameter for each that a fixed or searched option offers values of, unless it is typed."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for technique in sorted(app.techniques):
        group = by_key.get(f"{GROUP}{technique}")
        for label, option in _options(technique, group, app):
            for name, values in app.parameters_of(technique, option).items():
                key = f"{NODE}{technique}.{name}"
                if len(values) > 1 and key not in by_key:
                    texts = tuple(label_text(value) for value in values)
                    found.setdefault((key, texts), []).append(label)
    return [
        _offer(key, texts, among, by_key, [other for other, _ in found])
        for (key, texts), among in found.items()
    ]


def _options(technique: str, group: Fixed | Parameter | None, app: App) -> list[tuple[str, str]]:
    """Return label and option, of every option that a trial may choose."""
    if isinstance(group, Parameter):
        return [(label, str(group.value(label))) for label in group.labels]
    option = app.option_of(technique) if group is None else str(group.value)
    return [(option, option)]


def _offer(
    key: str,
    texts: tuple[str, ...],
    among: Sequence[str],
    by_key: Mapping[str, Fixed | Parameter],
    keys: Sequence[str],
) -> Parameter:
    group = by_key.get(GROUP + key.removeprefix(NODE).split(".")[0])
    conditions = (
        (Condition(parent=group.name, among=frozenset(among)),) if isinstance(group, Parameter) else ()
    )
    return Parameter(
        name=key if keys.count(key) == 1 else f"{key} of {' or '.join(among)}",
        key=key,
        typed=key,
        distribution=CategoricalDistribution(texts),
        labels=texts,
        values=tuple(read_value(text) for text in texts),
        conditions=conditions,
    )
