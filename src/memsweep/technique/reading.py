"""One file of conf/technique, from YAML to `Option`: what is wrong with it is said all at once.

Only the form is checked here.  Whether the techniques, options and trainers that a rule names exist can be
told only when every file was read (`catalogue`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from memsweep.technique.option import Changes, Equivalence, Needs, Option, Parameter, Saves, Seam, Support
from memsweep.technique.rule import Condition, Rule, RuleKind

_PARAMETER = re.compile(r"\$\{([^}]*)\}")
_PROSE = ("summary", "costs", "source")
_RULES = ("needs", "trainers", "requires", "excludes")
_KEYS = (*_PROSE, "saves", "changes", *_RULES, "parameters", "same_as", "settings")


def read_option(technique: str, name: str, data: object, problems: list[str]) -> Option | None:
    """Return the option that a file describes, or None after adding to `problems` what is wrong.

    Args:
        technique: The file's folder.
        name: The file's name, without `.yaml`.
        data: What the file holds, `${...}` not resolved.
        problems: Where to add one sentence for each problem, without the file's name.
    """
    count = len(problems)
    if not isinstance(data, Mapping):
        problems.append(f"must be a mapping with the keys {', '.join(_KEYS)}")
        return None
    _only(data, _KEYS, "the file", problems)
    problems.extend(
        f"{key} must be a sentence, got {data.get(key)!r}"
        for key in _PROSE
        if not isinstance(data.get(key), str) or not data[key].strip()
    )
    saves = _words(data.get("saves"), Saves, "saves", problems)
    changes = _words(data.get("changes"), Changes, "changes", problems)
    parameters = {
        str(key): _parameter(str(key), value, problems)
        for key, value in _mapping(data, "parameters", problems).items()
    }
    settings = dict(_mapping(data, "settings", problems))
    by_trainer = settings.pop("trainers", None) or {}
    _check_settings(settings, parameters, "settings", problems)
    for trainer, part in _mapping({"settings.trainers": by_trainer}, "settings.trainers", problems).items():
        _check_settings(part, parameters, f"settings.trainers.{trainer}", problems)
    needs = _needs(_mapping(data, "needs", problems), problems)
    support = _support(data.get("trainers"), problems)
    rules = (*_rules(data, RuleKind.REQUIRES, problems), *_rules(data, RuleKind.EXCLUDES, problems))
    same_as = tuple(_equivalences(data.get("same_as"), problems))
    if len(problems) > count:
        return None
    return Option(
        technique=technique,
        name=name,
        summary=data["summary"].strip(),
        saves=saves,
        costs=data["costs"].strip(),
        source=data["source"].strip(),
        changes=changes,
        needs=needs,
        support=support,
        rules=rules,
        parameters={key: value for key, value in parameters.items() if value is not None},
        settings=settings,
        settings_by_trainer=by_trainer,
        same_as=same_as,
    )


def expressions(value: object) -> Iterator[str]:
    """Yield the name in every `${name}` within `value`, however deep."""
    if isinstance(value, str):
        yield from _PARAMETER.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from expressions(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from expressions(item)


def _mapping(data: Mapping[str, Any], key: str, problems: list[str]) -> Mapping[str, Any]:
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(f"{key} must be a mapping, got {value!r}")
        return {}
    return value


def _only(data: Mapping[str, Any], allowed: Sequence[str], where: str, problems: list[str]) -> None:
    unknown = [str(key) for key in data if key not in allowed]
    if unknown:
        problems.append(f"{where} has no key {', '.join(unknown)}; it may have {', '.join(allowed)}")


def _list(value: object) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _words(value: object, kind: type[StrEnum], key: str, problems: list[str]) -> tuple[str, ...]:
    words = _list(value)
    known = [str(word) for word in kind]
    if not words or any(word not in known for word in words):
        problems.append(f"{key} must be one or more of {', '.join(known)}, got {value!r}")
        return ()
    if "nothing" in words and len(words) > 1:
        problems.append(f"{key} is nothing or something, got {value!r}")
    return tuple(str(word) for word in words)


def _parameter(name: str, data: object, problems: list[str]) -> Parameter | None:
    where = f"parameters.{name}"
    if not isinstance(data, Mapping):
        problems.append(f"{where} must be a mapping with default, search and help, got {data!r}")
        return None
    _only(data, ("default", "search", "help", "min", "max"), where, problems)
    if name == "option" or not name.isidentifier():
        problems.append(f"{where} is not a name that a parameter can have")
    default, text = data.get("default"), data.get("help")
    if not isinstance(default, (bool, int, float, str)):
        problems.append(f"{where}.default must be a number or a word, got {default!r}")
        return None
    if not isinstance(text, str):
        problems.append(f"{where}.help must say what it does, got {text!r}")
        return None
    parameter = Parameter(
        name=name,
        default=default,
        search=tuple(_list(data.get("search"))),
        help=text,
        minimum=data.get("min"),
        maximum=data.get("max"),
    )
    for value in (default, *parameter.search):
        problem = parameter.problem(value)
        if problem:
            problems.append(f"{where}: a value {problem}")
    return parameter


def _check_settings(
    settings: object, parameters: Mapping[str, object], where: str, problems: list[str]
) -> None:
    seams = [str(seam) for seam in Seam]
    if not isinstance(settings, Mapping):
        problems.append(f"{where} must be a mapping, got {settings!r}")
        return
    _only(settings, seams, where, problems)
    problems.extend(
        f"{where}.{seam} must be a mapping, got {part!r}"
        for seam, part in settings.items()
        if not isinstance(part or {}, Mapping)
    )
    known = ", ".join(parameters) or "none"
    problems.extend(
        f"{where} uses ${{{name}}}, which is not a parameter of this option ({known})"
        for name in expressions(settings)
        if name not in parameters
    )


def _needs(data: Mapping[str, Any], problems: list[str]) -> Needs:
    known = ("packages", "device", "min_compute_capability", "network", "several_processes", "verified")
    _only(data, known, "needs", problems)
    if data.get("device", "any") not in ("any", "cuda"):
        problems.append(f"needs.device must be any or cuda, got {data['device']!r}")
    if data.get("verified", "cpu") not in ("cpu", "hardware", "source"):
        problems.append(f"needs.verified must be cpu, hardware or source, got {data['verified']!r}")
    for package in _list(data.get("packages")):
        try:
            Requirement(package)
        except (InvalidRequirement, TypeError):
            problems.append(f"needs.packages: {package!r} is not a requirement that pip takes")
    return Needs(
        **{**data, "packages": tuple(_list(data.get("packages")))} if set(data) <= set(known) else {}
    )


def _support(data: object, problems: list[str]) -> Support | None:
    if data is None:
        return None
    if not isinstance(data, Mapping):
        problems.append(f"trainers must be a mapping with allowed, because and source, got {data!r}")
        return None
    _only(data, ("allowed", "because", "source"), "trainers", problems)
    if not _list(data.get("allowed")):
        problems.append("trainers.allowed must list a trainer")
    _because(data, "trainers", problems)
    return Support(
        allowed=tuple(_list(data.get("allowed"))),
        because=str(data.get("because")),
        source=str(data.get("source")),
    )


def _because(data: Mapping[str, Any], where: str, problems: list[str]) -> None:
    problems.extend(
        f"{where} must say its {key}, got {data.get(key)!r}"
        for key in ("because", "source")
        if not isinstance(data.get(key), str)
    )


def _rules(data: Mapping[str, Any], kind: RuleKind, problems: list[str]) -> Iterator[Rule]:
    entries = data.get(kind.value)
    if entries is not None and not isinstance(entries, list):
        problems.append(f"{kind.value} must be a list of rules, got {entries!r}")
        return
    for index, entry in enumerate(entries or []):
        where = f"{kind.value}[{index}]"
        if not isinstance(entry, Mapping):
            problems.append(f"{where} must be a mapping, got {entry!r}")
            continue
        _because(entry, where, problems)
        facts = dict(entry)
        because, source = str(facts.pop("because", "")), str(facts.pop("source", ""))
        trainers = tuple(_list(facts.pop("trainers", None)))
        versions = _versions(facts.pop("versions", None), where, problems)
        alternatives = _list(facts.pop("any_of", None)) or [{}]
        any_of = tuple(
            {key: _condition(key, value, where, problems) for key, value in {**facts, **alternative}.items()}
            for alternative in alternatives
            if isinstance(alternative, Mapping)
        )
        if not any_of or not all(any_of):
            problems.append(f"{where} has no condition, such as `adapter: [lora]`")
        yield Rule(
            kind=kind, any_of=any_of, because=because, source=source, trainers=trainers, versions=versions
        )


def _versions(data: object, where: str, problems: list[str]) -> dict[str, str]:
    versions = data if isinstance(data, Mapping) else {}
    for package, specifier in versions.items():
        try:
            SpecifierSet(specifier)
        except (InvalidSpecifier, TypeError, AttributeError):
            problems.append(f"{where}.versions.{package}: {specifier!r} is not a version specifier")
    if data is not None and not isinstance(data, Mapping):
        problems.append(f"{where}.versions must be a mapping, got {data!r}")
    return dict(versions)


def _condition(key: str, data: object, where: str, problems: list[str]) -> Condition:
    if not isinstance(data, Mapping):
        return Condition(key=key, allowed=tuple(_list(data)))
    bounds = ("at_least", "at_most", "above", "divides")
    _only(data, (*bounds, "other_than"), f"{where}.{key}", problems)
    if "other_than" in data:
        return Condition(key=key, other_than=tuple(_list(data["other_than"])))
    at_least, at_most, above, divides = (data.get(name) for name in bounds)
    return Condition(key=key, at_least=at_least, at_most=at_most, above=above, divides=divides)


def _equivalences(data: object, problems: list[str]) -> Iterator[Equivalence]:
    for entry in _list(data):
        if isinstance(entry, str):
            yield Equivalence(option=entry)
        elif isinstance(entry, Mapping) and isinstance(entry.get("option"), str):
            _only(entry, ("option", "trainers", "parameters", "when"), "same_as", problems)
            yield Equivalence(
                option=entry["option"],
                trainers=tuple(_list(entry.get("trainers"))),
                parameters=dict(_mapping(entry, "parameters", problems)),
                when={key: tuple(_list(value)) for key, value in _mapping(entry, "when", problems).items()},
            )
        else:
            problems.append(f"same_as must name an option, got {entry!r}")
