"""Choices that break one rule and no other, so that the libraries can be asked what they make of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from walk import refusals

from memsweep.machine import package_versions
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.option import BASELINE, Option
from memsweep.technique.rule import ARGUMENT, NUMBERS, Condition, Rule

MOST_PARTNERS = 3


@dataclass(frozen=True, slots=True)
class Breach:
    """A choice that breaks one rule of the catalogue.

    Attributes:
        option: Whose rule it is.
        rule: The rule.
        trainer: In which trainer.
        choice: Technique to option, and parameters and the trainer's arguments to values.
    """

    option: Option
    rule: Rule
    trainer: str
    choice: Mapping[str, Any]

    @property
    def name(self) -> str:
        """In words, for a test's name."""
        return f"{self.trainer} " + " ".join(f"{key}={value}" for key, value in self.choice.items())


def breaches(catalogue: Catalogue) -> list[Breach]:
    """Return choices that break one rule alone: one a rule and trainer, more until each value is used."""
    found: list[Breach] = []
    for technique in catalogue.techniques.values():
        for option in technique.options.values():
            for rule in option.rules:
                unused = set(_listed(rule, catalogue))
                for trainer in catalogue.trainers:
                    choices = list(_breaking(option, rule, trainer, catalogue))
                    wanted = choices[:1]
                    for choice in choices:
                        if unused & set(choice.items()):
                            wanted += [choice] if choice not in wanted else []
                        unused -= set(choice.items())
                    found += [Breach(option, rule, trainer, choice) for choice in wanted]
    return found


def _listed(rule: Rule, catalogue: Catalogue) -> Iterator[tuple[str, Any]]:
    for key, condition in (pair for part in rule.any_of for pair in part.items()):
        if key in catalogue.techniques:
            yield from ((key, name) for name in condition.allowed)


def can_be_tried(option: Option, rule: Rule) -> bool:
    """Tell whether this machine has what the option needs, and the rule is about the versions installed."""
    packages = [Requirement(text).name for text in option.needs.packages]
    versions = package_versions([*packages, *rule.versions])
    return (
        option.needs.device == "any"
        and not option.needs.several_devices
        and all(name in versions for name in packages)
        and all(SpecifierSet(bounds).contains(versions[name]) for name, bounds in rule.versions.items())
    )


def _breaking(option: Option, rule: Rule, trainer: str, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    if option.support is not None and trainer not in option.support.allowed:
        return
    values = _values(option, trainer, catalogue)
    for n_partners in range(MOST_PARTNERS + 1):
        some = False
        for keys in itertools.combinations(values, n_partners):
            for chosen in itertools.product(*(values[key] for key in keys)):
                choice = {option.technique: option.name, **dict(zip(keys, chosen, strict=True))}
                broken = refusals(trainer, choice, catalogue)
                if len(broken) == 1 and rule.because in broken[0] and option.label in broken[0]:
                    some = True
                    yield choice
        if some:
            return


def _values(option: Option, trainer: str, catalogue: Catalogue) -> dict[str, list[Any]]:
    """Return the facts that the option's rules are about, with values worth trying."""
    values: dict[str, list[Any]] = {}
    for key, condition in (pair for rule in option.rules for part in rule.any_of for pair in part.items()):
        technique, _, parameter = key.partition(".")
        if parameter and technique == option.technique:
            declared = option.parameters[parameter]
            values[f"technique.{key}"] = [value for value in (1, 3) if declared.problem(value) is None]
        elif key.startswith(ARGUMENT) or key in NUMBERS:
            values.setdefault(key, []).extend(_both_sides(condition))
        elif technique in catalogue.techniques and technique != option.technique:
            known = catalogue.techniques[technique].options.values()
            values[technique] = [
                o.name
                for o in known
                if o.name != BASELINE and o.needs.device == "any" and not o.needs.several_devices
            ]
    return values


def _both_sides(condition: Condition) -> list[Any]:
    if condition.allowed:
        return list(condition.allowed)
    above = [] if condition.above is None else [condition.above, condition.above + 0.1]
    return [bound for bound in (condition.at_least, condition.at_most) if bound is not None] + above
