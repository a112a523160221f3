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
from memsweep.technique.checking import dangling, misnamed, misplaced
from memsweep.technique.choice import ChosenOption
from memsweep.technique.option import BASELINE, Option, Technique
from memsweep.technique.reading import read_option
from memsweep.technique.rule import FACTS, Condition, Rule
from memsweep.technique.yaml_text import read_yaml


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

    def require_trainer(self, name: str) -> None:
        """Raise unless there is such a trainer.

        Raises:
            UnknownOption: It lists those that there are.
        """
        if name not in self.trainers:
            raise UnknownOption(f"no trainer.name={name}: type trainer=<one of {', '.join(self.trainers)}>")

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
    problems = misplaced(conf)
    techniques: dict[str, Technique] = {}
    for folder in sorted(path for path in (conf / "technique").glob("*") if path.is_dir()):
        where = str(folder.relative_to(conf))
        problems.extend(f"{where}: {problem}" for problem in misnamed(folder.name))
        options = dict(_read_folder(folder, conf, problems))
        if BASELINE not in {file.stem for file in folder.glob("*.yaml")}:
            problems.append(f"{where} has no baseline.yaml: every technique has that option")
        techniques[folder.name] = Technique(name=folder.name, options=options)
    if not techniques:
        problems.append(
            f"{conf / 'technique'} holds no technique folder; set MEMSWEEP_CONF to the conf folder"
        )
    trainers = tuple(sorted(path.stem for path in (conf / "trainer").glob("*.yaml")))
    if not problems:
        problems = dangling(techniques, trainers)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise CatalogueError(f"{len(problems)} problem(s) in {conf}:\n{lines}")
    catalogue = Catalogue(conf=conf, techniques=techniques, trainers=trainers)
    resolved = {name: _without_negations(technique, catalogue) for name, technique in techniques.items()}
    return replace(catalogue, techniques=resolved)


def _read_folder(folder: Path, conf: Path, problems: list[str]) -> list[tuple[str, Option]]:
    found: list[tuple[str, Option]] = []
    files = sorted(folder.glob("*.yaml"), key=lambda path: (path.stem != BASELINE, path.stem))
    for file in files:
        own = misnamed(file.stem)
        if not own:
            try:
                option = read_option(folder.name, file.stem, read_yaml(file), own)
            except ValueError as error:
                own.append(str(error))
            else:
                found.extend([(file.stem, option)] if option else [])
        problems.extend(f"{file.relative_to(conf)}: {problem}" for problem in own)
    return found


def _without_negations(technique: Technique, catalogue: Catalogue) -> Technique:
    """Return `technique` with each `other_than` as the list of what remains."""

    def positive(condition: Condition) -> Condition:
        if not condition.other_than:
            return condition
        known = FACTS.get(condition.key) or catalogue.trainers
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
