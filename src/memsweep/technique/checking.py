"""Does what the files of conf/technique say fit together: names, places, and what rules and equalities name?

Asked when every file was read, so that a mistake is told at the start and not by a rule that never acts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from memsweep import machine
from memsweep.technique.form import did_you_mean, expressions
from memsweep.technique.option import Option, Technique
from memsweep.technique.rule import ARGUMENT, FACTS, NUMBERS, Condition, is_circumstance

_FORBIDDEN = frozenset({"on", "off", "yes", "no", "true", "false", "null", "y", "n"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_OF_A_RULE = ("because", "source", "trainers", "versions", "any_of")


def misnamed(name: str) -> list[str]:
    """Return what is wrong with the name of a technique or an option; empty when nothing is."""
    if name.lower() in _FORBIDDEN:
        return [f"YAML reads {name} as a truth value; give it a name"]
    if not _NAME.fullmatch(name):
        return [f"{name!r} cannot be a name: lower-case letters, digits and _, a letter first"]
    return []


def misplaced(conf: Path) -> list[str]:
    """Return what is wrong with where files are: those that nothing would read."""
    problems = [
        f"{file.relative_to(conf)}: files that end in .yml are not read: name it {file.stem}.yaml"
        for file in sorted(conf.rglob("*.yml"))
    ]
    folder = conf / "technique"
    problems += [
        f"{file.relative_to(conf)} is not read: an option is technique/<technique>/<option>.yaml"
        for file in sorted(folder.rglob("*.yaml"))
        if len(file.relative_to(folder).parts) != 2
    ]
    return problems


def dangling(techniques: Mapping[str, Technique], trainers: tuple[str, ...]) -> list[str]:
    """Return what the options name that does not exist, and what they declare in vain, each with its file.

    Args:
        techniques: All of them, as read.
        trainers: The names of conf/trainer.
    """
    options = [option for technique in techniques.values() for option in technique.options.values()]
    packages = _packages(options)
    used = {c.key for option in options for c in _conditions(option)}
    problems = []
    for option in options:
        own = [
            *_unknown_trainers(option, trainers),
            *_unknown_facts(option, techniques),
            *_unknown_siblings(option, techniques[option.technique]),
            *_unknown_packages(option, packages),
            *_unused(option, used),
        ]
        where = f"technique/{option.technique}/{option.name}.yaml"
        problems += [f"{where}: {problem}" for problem in own]
    return problems


def _conditions(option: Option) -> Iterator[Condition]:
    for rule in option.rules:
        for part in rule.any_of:
            yield from part.values()


def _unknown_trainers(option: Option, trainers: tuple[str, ...]) -> list[str]:
    if not trainers:
        return []
    named = [*(option.support.allowed if option.support else ()), *option.settings_by_trainer]
    named += [trainer for rule in option.rules for trainer in rule.trainers]
    named += [trainer for equal in option.same_as for trainer in equal.trainers]
    named += [name for c in _conditions(option) if c.key == "trainer" for name in (*c.allowed, *c.other_than)]
    unknown = sorted({str(name) for name in named} - set(trainers))
    return [
        f"no trainer {name!r}{did_you_mean(name, trainers) or f'; there are {_listed(trainers)}'}"
        for name in unknown
    ]


def _unknown_facts(option: Option, techniques: Mapping[str, Technique]) -> Iterator[str]:
    equalities = [
        Condition(key=str(key), allowed=value)
        for equal in option.same_as
        for key, value in equal.when.items()
    ]
    for condition in (*_conditions(option), *equalities):
        problem = _about_itself(condition, option) or _unknown_fact(condition, techniques)
        if problem:
            yield problem


def _about_itself(condition: Condition, option: Option) -> str | None:
    technique, _, parameter = condition.key.partition(".")
    if technique != option.technique or is_circumstance(condition.key):
        return None
    if not parameter:
        return f"a rule is about {technique} itself, which is {option.name} wherever the rule counts"
    if parameter in option.parameters:
        return None
    hint = did_you_mean(parameter, option.parameters) or f"; it has {_listed(option.parameters)}"
    return f"a rule is about {condition.key}, which {option.name} does not have{hint}"


def _unknown_fact(condition: Condition, techniques: Mapping[str, Technique]) -> str | None:
    key = condition.key
    named = [str(name) for name in (*condition.allowed, *condition.other_than)]
    if condition.divides is not None and condition.divides not in NUMBERS:
        hint = did_you_mean(str(condition.divides), NUMBERS) or f", which is none of {_listed(NUMBERS)}"
        return f"a rule is about {condition.divides!r}{hint}"
    if is_circumstance(key):
        values = FACTS.get(key, ())
        strange = [name for name in named if name not in values]
        if not values or not strange:
            return None
        return f"a rule is about {key}={' or '.join(strange)}; it is one of {_listed(values)}"
    technique, _, parameter = key.partition(".")
    if technique not in techniques:
        return f"a rule is about {key!r}{_probably(key, techniques)}"
    options = techniques[technique].options
    if parameter:
        has = {name for option in options.values() for name in option.parameters}
        if parameter in has:
            return None
        hint = did_you_mean(key, [f"{technique}.{name}" for name in sorted(has)])
        return f"a rule is about {key}, but no option of {technique} has that parameter{hint}"
    unknown = [name for name in named if name not in options]
    if not named or unknown:
        hint = did_you_mean(unknown[0], options) if len(unknown) == 1 else ""
        return (
            f"a rule is about {key}={' or '.join(unknown)}{hint or f'; the options are {_listed(options)}'}"
        )
    return None


def _probably(key: str, techniques: Mapping[str, Technique]) -> str:
    """Return what a key that is about nothing was probably to be; if that cannot be told, what there is."""
    head, _, field = key.rpartition(".")
    if did_you_mean(f"{head}.", [ARGUMENT]):
        return f"; did you mean {ARGUMENT}{field}?"
    if key == ARGUMENT.removesuffix("."):
        return f"; did you mean {ARGUMENT}<field>?"
    if field in NUMBERS:
        return f"; did you mean {field}?"
    keys = [f"{t.name}.{p}" for t in techniques.values() for o in t.options.values() for p in o.parameters]
    known = (*FACTS, *NUMBERS, *_OF_A_RULE, *techniques, *sorted(set(keys)))
    circumstances = _listed((*FACTS, *NUMBERS, f"{ARGUMENT}<field>"))
    return did_you_mean(key, known) or f", which is no technique and none of {circumstances}"


def _unknown_siblings(option: Option, technique: Technique) -> list[str]:
    siblings = technique.options
    return [
        f"same_as names {equal.option!r}"
        + (did_you_mean(equal.option, siblings) or f"; the options are {_listed(siblings)}")
        for equal in option.same_as
        if equal.option not in siblings
    ]


def _packages(options: Iterable[Option]) -> frozenset[str]:
    """Return the packages that can be meant, installed or not: those that something needs."""
    texts = [text for option in options for text in option.needs.packages]
    with suppress(metadata.PackageNotFoundError):  # used from its folder, not installed
        texts += metadata.requires("memsweep") or []
    return frozenset(Requirement(text).name for text in texts)


def _unknown_packages(option: Option, known: frozenset[str]) -> list[str]:
    named = dict.fromkeys(str(package) for rule in option.rules for package in rule.versions)
    unknown = [
        package for package in named if package not in known and not machine.package_versions([package])
    ]
    return [
        f"a rule is for versions of {package!r}, which is not installed and which nothing here needs"
        + did_you_mean(package, sorted(known))
        for package in unknown
    ]


def _unused(option: Option, used_by_rules: set[str]) -> Iterator[str]:
    settings = (option.settings, option.settings_by_trainer)
    used = {name for part in settings for name in expressions(part)}
    for name in option.parameters:
        if name not in used and f"{option.technique}.{name}" not in used_by_rules:
            yield f"parameters.{name} is used by no setting" + _forgotten(name, settings)


def _forgotten(name: str, settings: Iterable[object]) -> str:
    """Return a hint where settings hold `{name}` without its dollar."""
    return f'; write "${{{name}}}" for "{{{name}}}"' if f"{{{name}}}" in str(settings) else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
