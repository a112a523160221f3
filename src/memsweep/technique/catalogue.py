"""Which techniques there are: the folders of conf/technique, read once.

The folder is the registry.  A new technique is a new folder and a new option a new file; nothing in
`src/` lists them.  conf/README.md says what a file may hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memsweep.errors import CatalogueError, UnknownOption
from memsweep.technique.choice import ChosenOption
from memsweep.technique.option import BASELINE, Option, Technique
from memsweep.technique.reading import read_option
from memsweep.technique.rule import Condition, Rule
from memsweep.technique.yaml_text import read_yaml

_FORBIDDEN = frozenset({"on", "off", "yes", "no", "true", "false", "null", "y", "n"})
_FACTS: Mapping[str, tuple[str, ...]] = {
    "trainer": (),  # those of conf/trainer
    "device": ("cpu", "cuda"),
    "bf16": ("native", "emulated"),
}
"""What a rule may say of the trial's circumstances, and what each can be."""

NUMBERS = ("batch", "measure.evaluation_examples")
"""Numbers of the configuration that a rule may be about; `batch` is `trainer.batch`."""

ARGUMENT = "trainer.arguments."
"""What begins the key of a condition on a field of the trainer's own arguments."""


def is_circumstance(key: str) -> bool:
    """Tell whether a condition's key is about the trial's circumstances, not about the chosen options."""
    return key in _FACTS or key in NUMBERS or key.startswith(ARGUMENT)


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Every technique of a conf folder.

    Attributes:
        conf: The folder that it was read from.
        techniques: Name to technique, sorted.
        trainers: Names of the trainers of conf/trainer, sorted.
    """

    conf: Path
    techniques: Mapping[str, Technique]
    trainers: tuple[str, ...] = field(default=())

    def option(self, technique: str, option: str) -> Option:
        """Return one option.

        Raises:
            UnknownOption: If there is no such technique or option; the message lists what there is.
        """
        found = self.techniques.get(technique)
        if found is None:
            raise UnknownOption(f"no technique {technique!r}; there are {', '.join(self.techniques)}")
        if option not in found.options:
            raise UnknownOption(
                f"technique {technique} has no option {option!r}; it has {', '.join(found.options)}"
            )
        return found.options[option]

    def baseline_choice(self) -> dict[str, ChosenOption]:
        """Return the choice of all baselines."""
        return self.choose({})

    def choose(
        self, options: Mapping[str, str], parameters: Mapping[str, Any] | None = None
    ) -> dict[str, ChosenOption]:
        """Return a complete choice: what is not named is baseline, and defaults fill the parameters.

        Args:
            options: Technique to option.
            parameters: `technique.<technique>.<parameter>` to value.

        Raises:
            UnknownOption: All unknown names and ill-typed values at once.
        """
        problems: list[str] = []
        chosen: dict[str, Option] = {}
        for technique, option in {**dict.fromkeys(self.techniques, BASELINE), **options}.items():
            try:
                chosen[technique] = self.option(technique, option)
            except UnknownOption as error:
                problems.append(str(error))
        values = {technique: option.defaults() for technique, option in chosen.items()}
        for key, value in (parameters or {}).items():
            self._set(key, value, chosen, values, problems)
        if problems:
            raise UnknownOption("\n".join(problems))
        return {
            technique: ChosenOption(option=option.name, parameters=values[technique])
            for technique, option in chosen.items()
        }

    def _set(
        self,
        key: str,
        value: object,
        chosen: Mapping[str, Option],
        values: Mapping[str, dict[str, Any]],
        problems: list[str],
    ) -> None:
        prefix, _, name = key.rpartition(".")
        option = chosen.get(prefix.removeprefix("technique."))
        if option is None or not prefix.startswith("technique."):
            problems.append(f"{key} is no parameter; they are at technique.<technique>.<parameter>")
        elif name not in option.parameters:
            has = ", ".join(option.parameters) or "none"
            problems.append(f"{key}: {option.label} has no parameter {name!r}; it has {has}")
        elif problem := option.parameters[name].problem(value):
            problems.append(f"{key} {problem}")
        else:
            values[option.technique][name] = value


def conf_folder() -> Path:
    """Return the folder of the configuration: $MEMSWEEP_CONF, the repository's, or the installed copy."""
    asked = os.environ.get("MEMSWEEP_CONF")
    if asked:
        return Path(asked)
    package = Path(__file__).resolve().parents[1]
    beside = package.parents[1] / "conf"
    return beside if (beside / "config.yaml").exists() else package / "conf"


def read_catalogue(conf: Path) -> Catalogue:
    """Read every file of `conf`/technique.

    Raises:
        CatalogueError: All problems of all files at once, each with its file.
    """
    problems: list[str] = []
    techniques: dict[str, Technique] = {}
    for folder in sorted(path for path in (conf / "technique").glob("*") if path.is_dir()):
        options = dict(_read_folder(folder, conf, problems))
        if BASELINE not in {file.stem for file in folder.glob("*.yaml")}:
            problems.append(
                f"{folder.relative_to(conf)} has no baseline.yaml: every technique has that option"
            )
        techniques[folder.name] = Technique(name=folder.name, options=options)
    if not techniques:
        problems.append(
            f"{conf / 'technique'} holds no technique folder; set MEMSWEEP_CONF to the conf folder"
        )
    trainers = tuple(sorted(path.stem for path in (conf / "trainer").glob("*.yaml")))
    catalogue = Catalogue(conf=conf, techniques=techniques, trainers=trainers)
    if not problems:
        for technique in techniques.values():
            for option in technique.options.values():
                where = f"technique/{option.technique}/{option.name}.yaml"
                problems.extend(f"{where}: {problem}" for problem in _dangling(option, catalogue))
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise CatalogueError(f"{len(problems)} problem(s) in {conf}:\n{lines}")
    resolved = {name: _without_negations(technique, catalogue) for name, technique in techniques.items()}
    return replace(catalogue, techniques=resolved)


def _read_folder(folder: Path, conf: Path, problems: list[str]) -> list[tuple[str, Option]]:
    found: list[tuple[str, Option]] = []
    files = sorted(folder.glob("*.yaml"), key=lambda path: (path.stem != BASELINE, path.stem))
    for file in files:
        where = str(file.relative_to(conf))
        if file.stem.lower() in _FORBIDDEN:
            problems.append(f"{where}: YAML reads {file.stem} as a truth value; give the option a name")
            continue
        own: list[str] = []
        try:
            option = read_option(folder.name, file.stem, read_yaml(file), own)
        except ValueError as error:
            own.append(str(error))
        else:
            found.extend([(file.stem, option)] if option else [])
        problems.extend(f"{where}: {problem}" for problem in own)
    return found


def _dangling(option: Option, catalogue: Catalogue) -> list[str]:
    """Return what an option's rules and equalities name that does not exist."""
    problems = []
    named = [*(option.support.allowed if option.support else ()), *option.settings_by_trainer]
    named += [trainer for rule in option.rules for trainer in rule.trainers]
    named += [trainer for equal in option.same_as for trainer in equal.trainers]
    conditions = [c for rule in option.rules for part in rule.any_of for c in part.values()]
    named += [name for c in conditions if c.key == "trainer" for name in (*c.allowed, *c.other_than)]
    if catalogue.trainers:
        unknown = sorted({str(name) for name in named} - set(catalogue.trainers))
        problems += [f"no trainer {name!r}; there are {', '.join(catalogue.trainers)}" for name in unknown]
    equalities = [Condition(key=k, allowed=v) for equal in option.same_as for k, v in equal.when.items()]
    for condition in (*conditions, *equalities):
        problem = _unknown_fact(condition, catalogue)
        problems += [problem] if problem else []
    siblings = catalogue.techniques[option.technique].options
    problems += [
        f"same_as names {equal.option!r}; the options are {', '.join(siblings)}"
        for equal in option.same_as
        if equal.option not in siblings
    ]
    return problems


def _unknown_fact(condition: Condition, catalogue: Catalogue) -> str | None:
    if condition.divides is not None and condition.divides not in NUMBERS:
        return f"a rule is about {condition.divides!r}, which is none of {', '.join(NUMBERS)}"
    if is_circumstance(condition.key):
        values = _FACTS.get(condition.key, ())
        strange = [str(name) for name in (*condition.allowed, *condition.other_than) if name not in values]
        if not values or not strange:
            return None
        return f"a rule is about {condition.key}={' or '.join(strange)}; it is one of {', '.join(values)}"
    technique, _, parameter = condition.key.partition(".")
    if technique not in catalogue.techniques:
        known = ", ".join((*_FACTS, *NUMBERS, f"{ARGUMENT}<field>", *catalogue.techniques))
        return f"a rule is about {technique!r}, which is none of {known}"
    options = catalogue.techniques[technique].options
    if parameter:
        if any(parameter in option.parameters for option in options.values()):
            return None
        return f"a rule is about {condition.key}, but no option of {technique} has that parameter"
    unknown = [str(name) for name in (*condition.allowed, *condition.other_than) if name not in options]
    if unknown or not (condition.allowed or condition.other_than):
        return f"a rule is about {technique}={' or '.join(unknown)}; the options are {', '.join(options)}"
    return None


def _without_negations(technique: Technique, catalogue: Catalogue) -> Technique:
    """Return `technique` with each `other_than` as the list of what remains."""

    def positive(condition: Condition) -> Condition:
        if not condition.other_than:
            return condition
        known = _FACTS.get(condition.key) or catalogue.trainers
        if condition.key in catalogue.techniques:
            known = tuple(catalogue.techniques[condition.key].options)
        rest = tuple(name for name in known if name not in condition.other_than)
        return replace(condition, allowed=rest, other_than=())

    def rewritten(rule: Rule) -> Rule:
        any_of = tuple({key: positive(c) for key, c in part.items()} for part in rule.any_of)
        return replace(rule, any_of=any_of)

    options = {
        name: replace(option, rules=tuple(rewritten(rule) for rule in option.rules))
        for name, option in technique.options.items()
    }
    return replace(technique, options=options)
