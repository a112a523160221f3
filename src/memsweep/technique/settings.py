"""What a choice sets, seam by seam, and the hash of it.

Two options that set the same key are an error, not an order of merging.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from memsweep.errors import TwoOwners
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.option import BASELINE, Option, Seam
from memsweep.technique.rule import ARGUMENT

_EXPRESSION = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the chosen options set together; one mapping a seam (`memsweep.technique.option.Seam`).

    A trainer key may hold names of several library generations, separated by `|`: the first that the
    installed config class has is meant.
    """

    model: Mapping[str, Any] = field(default_factory=dict)
    trainer: Mapping[str, Any] = field(default_factory=dict)
    adapter: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    launch: Mapping[str, Any] = field(default_factory=dict)


def merge(choice: Mapping[str, ChosenOption], trainer: str, catalogue: Catalogue) -> Settings:
    """Return what `choice` sets for `trainer`.

    Options that declare themselves the same as another set what that one sets, so that equal set-ups have
    equal settings.

    Raises:
        TwoOwners: If two options set the same key; all such keys at once.
        UnknownOption: If the choice names what is not in the catalogue.
    """
    seams: dict[str, dict[str, Any]] = {seam.value: {} for seam in Seam}
    owners: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    for technique, chosen in choice.items():
        option, values = _canonical(catalogue.option(technique, chosen.option), choice, trainer, catalogue)
        for part in (option.settings, option.settings_by_trainer.get(trainer, {})):
            for seam, settings in part.items():
                own = filled(settings or {}, values)
                _add(seams[seam], own, (seam,), option.label, owners, problems)
    if problems:
        raise TwoOwners("\n".join(dict.fromkeys(problems)))
    seams["environment"] = {name: str(value) for name, value in seams["environment"].items()}
    return Settings(**seams)


def doubly_set(
    choice: Mapping[str, ChosenOption], trainer: str, arguments: Mapping[str, Any], catalogue: Catalogue
) -> tuple[str, ...]:
    """Return one sentence for each field of the trainer that the study sets itself and an option sets too.

    What an option sets counts even where it declares itself the same as another: it was asked for.

    Args:
        choice: Technique to option.
        trainer: The trainer's name.
        arguments: `trainer.arguments`; a key may go deeper: `model_init_kwargs.dtype`.
        catalogue: The techniques.

    Raises:
        UnknownOption: If the choice names what is not in the catalogue.
    """
    asked = {name.partition(".")[0] for name in arguments}
    found: dict[str, None] = {}
    for technique, chosen in choice.items():
        option = catalogue.option(technique, chosen.option)
        for part in (option.settings, option.settings_by_trainer.get(trainer, {})):
            for key in part.get(Seam.TRAINER) or ():
                for name in sorted(asked):
                    if _same_key(key, name):
                        both = f"{option.label} and {ARGUMENT}{name} both set it"
                        found[f"{both}: drop one of them"] = None
    return tuple(found)


def requested_hash(settings: Settings, rest: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a hash of what was asked for: 16 hexadecimal digits.

    Args:
        settings: What the techniques set.
        rest: Everything else that can change a trial's numbers, as plain data.
    """
    data = {"settings": asdict(settings), "rest": rest}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return JSON-ready data for what `json` does not know: mappings and dataclasses of ours."""
    if isinstance(value, Mapping):
        return dict(value)
    return asdict(value)


def _canonical(
    option: Option, choice: Mapping[str, ChosenOption], trainer: str, catalogue: Catalogue
) -> tuple[Option, Mapping[str, Any]]:
    """Return the option that this one declares itself equal to, with its values; else itself."""
    values = {**option.defaults(), **choice[option.technique].parameters}
    for equal in option.same_as:
        if (
            (not equal.trainers or trainer in equal.trainers)
            and all(values.get(name) == value for name, value in equal.parameters.items())
            and all(_chosen(choice, technique) in options for technique, options in equal.when.items())
        ):
            other = catalogue.option(option.technique, equal.option)
            shared = {name: value for name, value in values.items() if name in other.parameters}
            return other, {**other.defaults(), **shared}
    return option, values


def _chosen(choice: Mapping[str, ChosenOption], technique: str) -> str:
    return choice[technique].option if technique in choice else BASELINE


def filled(value: Any, parameters: Mapping[str, Any]) -> Any:
    """Return `value` with each `${name}` replaced; alone in its text it keeps its type."""
    if isinstance(value, Mapping):
        return {key: filled(item, parameters) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, parameters) for item in value]
    if not isinstance(value, str):
        return value
    alone = _EXPRESSION.fullmatch(value)
    if alone:
        return parameters[alone.group(1)]
    return _EXPRESSION.sub(lambda match: str(parameters[match.group(1)]), value)


def _add(
    target: dict[str, Any],
    new: Mapping[str, Any],
    path: tuple[str, ...],
    owner: str,
    owners: dict[tuple[str, ...], str],
    problems: list[str],
) -> None:
    """Merge `new` into `target`, mappings deeply, and note who set each key."""
    for key, value in new.items():
        taken = next((known for known in target if _same_key(known, key)), None)
        both = taken == key and isinstance(value, Mapping) and isinstance(target[key], dict)
        if taken is None:
            target[key] = {} if isinstance(value, Mapping) else value
            owners[*path, key] = owner
        elif not both:
            other = owners[*path, taken]
            names = ".".join((*path, key))
            problems.append(f"{other} and {owner} both set {names}: choose one of them")
            continue
        if isinstance(value, Mapping):
            _add(target[key], value, (*path, key), owner, owners, problems)


def _same_key(one: str, other: str) -> bool:
    """Tell whether two keys share a name; `a|b` has two."""
    return one == other or not set(one.split("|")).isdisjoint(other.split("|"))
