"""The rules and the declared equalities of one file of conf/technique, from YAML to types.

Only the form is checked here, as in `reading`; whether what they name exists, `checking` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from memsweep.technique.form import as_list, did_you_mean, mapping, only
from memsweep.technique.option import Equivalence, Parameter
from memsweep.technique.rule import Condition, Rule, RuleKind

_BECAUSE = ("because", "source")
_NUMBERS = ("at_least", "at_most", "above")


def read_rules(data: Mapping[str, Any], kind: RuleKind, problems: list[str]) -> Iterator[Rule]:
    """Yield the rules of one kind that a file holds, and add to `problems` what is wrong with them."""
    entries = data.get(kind.value)
    if entries is not None and not isinstance(entries, list):
        problems.append(f"{kind.value} must be a list of rules, got {entries!r}")
        return
    for index, entry in enumerate(entries or []):
        where = f"{kind.value}[{index}]"
        if not isinstance(entry, Mapping):
            problems.append(f"{where} must be a mapping, got {entry!r}")
            continue
        require_because(entry, where, problems)
        facts = dict(entry)
        because, source = str(facts.pop("because", "")), str(facts.pop("source", ""))
        trainers = tuple(as_list(facts.pop("trainers", None)))
        versions = _versions(facts.pop("versions", None), where, problems)
        alternatives = as_list(facts.pop("any_of", None)) or [{}]
        any_of = tuple(
            {
                str(key): _condition(str(key), value, where, problems)
                for key, value in {**facts, **alternative}.items()
            }
            for alternative in alternatives
            if isinstance(alternative, Mapping)
        )
        if not any_of or not all(any_of):
            problems.append(f"{where} has no condition, such as `adapter: [lora]`")
        yield Rule(
            kind=kind, any_of=any_of, because=because, source=source, trainers=trainers, versions=versions
        )


def require_because(data: Mapping[str, Any], where: str, problems: list[str]) -> None:
    """Add a problem unless `data` says why, and where that is known from."""
    others = [str(key) for key in data if key not in _BECAUSE]
    problems.extend(
        f"{where} must say its {key}, got {data.get(key)!r}{_misspelt(key, others)}"
        for key in _BECAUSE
        if not isinstance(data.get(key), str)
    )


def _misspelt(key: str, others: list[str]) -> str:
    """Return which of the other keys was probably to be `key`: `; did you mean because by becuase?`."""
    written = [name for name in others if did_you_mean(name, [key])]
    return f"; did you mean {key} by {written[0]}?" if written else ""


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
        return Condition(key=key, allowed=tuple(as_list(data)))
    only(data, (*_NUMBERS, "divides", "other_than"), f"{where}.{key}", problems)
    if "other_than" in data:
        return Condition(key=key, other_than=tuple(as_list(data["other_than"])))
    for name in _NUMBERS:
        bound = data.get(name)
        if name in data and (isinstance(bound, bool) or not isinstance(bound, int | float)):
            problems.append(f"{where}.{key}.{name} must be a number, got {bound!r}")
    at_least, at_most, above = (data.get(name) for name in _NUMBERS)
    return Condition(key=key, at_least=at_least, at_most=at_most, above=above, divides=data.get("divides"))


def read_equivalences(
    data: object, parameters: Mapping[str, Parameter | None], problems: list[str]
) -> Iterator[Equivalence]:
    """Yield the declared equalities of a file, and add to `problems` what is wrong with them.

    Args:
        data: What the file has at `same_as`.
        parameters: The option's own; a value is None where it is at fault itself.
        problems: Where to add.
    """
    for entry in as_list(data):
        if isinstance(entry, str):
            yield Equivalence(option=entry)
        elif isinstance(entry, Mapping) and isinstance(entry.get("option"), str):
            only(entry, ("option", "trainers", "parameters", "when"), "same_as", problems)
            values = dict(mapping(entry, "parameters", problems))
            problems.extend(_strange_values(values, parameters))
            yield Equivalence(
                option=entry["option"],
                trainers=tuple(as_list(entry.get("trainers"))),
                parameters=values,
                when={key: tuple(as_list(value)) for key, value in mapping(entry, "when", problems).items()},
            )
        else:
            problems.append(f"same_as must name an option, got {entry!r}")


def _strange_values(values: Mapping[str, Any], parameters: Mapping[str, Parameter | None]) -> Iterator[str]:
    for name, value in values.items():
        parameter = parameters.get(name)
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            hint = did_you_mean(str(name), parameters)
            yield f"same_as.parameters.{name} is not a parameter of this option ({known}){hint}"
        elif parameter is not None and (problem := parameter.problem(value)):
            yield f"same_as.parameters.{name} {problem}"
