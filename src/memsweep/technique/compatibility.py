"""Which rules a choice breaks: all of them at once, each as a sentence that teaches.

The rules are data (conf/technique); here they are judged against one trainer on one machine.  What does
not depend on the choice is settled once, so that a sweep can ask about every cell of its space.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from memsweep import machine
from memsweep.machine import Device
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.needs import unmet
from memsweep.technique.option import BASELINE, Changes, Option
from memsweep.technique.rule import ARGUMENT, NUMBERS, Rule, RuleKind, is_circumstance
from memsweep.technique.values import unfit_value, unknown_names
from memsweep.technique.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the rules are judged against, beside the choice itself.

    Attributes:
        trainer: The trainer's name.
        device: `cpu` or `cuda`.
        versions: Installed package to version; what is not there is not installed.
        numbers: Numbers of the configuration, by the names of `catalogue.NUMBERS`; a rule about one that is
            not there is not judged.
        arguments: Fields of the trainer's TRL config class that the configuration sets
            (`trainer.arguments`); None when that is not known, and then rules about them are not judged.
        bf16: `native` where the device multiplies bfloat16 itself, so that TRL's mixed precision is the
            baseline, else `emulated`; None takes it from the device: CUDA does, a CPU does not.
        compute_capability: Of the CUDA device, e.g. 9.0; None when unknown, which breaks no rule.
        network: Whether something can be downloaded.
        several_devices: Whether a trial can have several processes, with a device each.
        n_devices: That processes can have one each of; None when there are as many as processes.
        several_processes: Whether something can be started beside a trial: a server of its own.
    """

    trainer: str
    device: str
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    numbers: Mapping[str, int] = field(default_factory=dict, hash=False)
    arguments: Mapping[str, Any] | None = field(default=None, hash=False)
    bf16: str | None = None
    compute_capability: float | None = None
    network: bool = True
    several_devices: bool = False
    n_devices: int | None = None
    several_processes: bool = False

    def __post_init__(self) -> None:
        if self.bf16 is None:
            object.__setattr__(self, "bf16", "native" if self.device == Device.CUDA else "emulated")


def circumstances_here(
    trainer: str,
    asked: Device,
    catalogue: Catalogue,
    numbers: Mapping[str, int | None] | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    simulates_devices: bool = False,
) -> Circumstances:
    """Return the circumstances of a trial on this machine.

    Args:
        trainer: The trainer's name.
        asked: `launch.device`.
        catalogue: Which packages matter.
        numbers: Of the configuration; those that are None are left out.
        arguments: `trainer.arguments`.
        simulates_devices: `launch.simulates_devices`.
    """
    options = [option for technique in catalogue.techniques.values() for option in technique.options.values()]
    packages = {Requirement(text).name for option in options for text in option.needs.packages}
    packages |= {name for option in options for rule in option.rules for name in rule.versions}
    device, _ = machine.device(asked)
    capability = machine.compute_capability() if device is Device.CUDA else None
    # As `memsweep.trainers.arguments` decides the precision when nothing is asked.
    native = machine.has_native_bf16()[0] if device is Device.CPU else capability is None or capability >= 8
    n_devices = machine.n_devices() if device is Device.CUDA else 0
    return Circumstances(
        trainer=trainer,
        device=str(device),
        versions=machine.package_versions(sorted(packages)),
        numbers={name: number for name, number in (numbers or {}).items() if number is not None},
        arguments=arguments,
        bf16="native" if native else "emulated",
        compute_capability=capability,
        network=os.environ.get("HF_HUB_OFFLINE", "").lower() not in ("1", "on", "yes", "true"),
        several_devices=simulates_devices if device is Device.CPU else n_devices > 1,
        n_devices=None if device is Device.CPU else n_devices,
    )


_Facts = Mapping[str, ChosenOption]
_Check = Callable[[_Facts], str | None]


def violations(
    choice: Mapping[str, ChosenOption], circumstances: Circumstances, catalogue: Catalogue
) -> tuple[str, ...]:
    """Return one sentence for each rule that `choice` breaks; empty when it may run.

    Args:
        choice: Technique to option, complete.
        circumstances: Trainer and machine.
        catalogue: Where the rules are.
    """
    return rulebook(catalogue, circumstances).violations(choice)


def changes(choice: Mapping[str, ChosenOption], catalogue: Catalogue) -> tuple[str, ...]:
    """Return what `choice` changes beside speed and memory, sorted; empty when nothing."""
    found: set[str] = set()
    for technique, chosen in choice.items():
        found.update(catalogue.option(technique, chosen.option).changes)
    return tuple(sorted(found - {Changes.NOTHING.value}))


@lru_cache(maxsize=16)
def rulebook(catalogue: Catalogue, circumstances: Circumstances) -> Rulebook:
    """Return the rules that can be broken under `circumstances`, made once."""
    return Rulebook(catalogue, circumstances)


class Rulebook:
    """The rules of a catalogue under given circumstances."""

    def __init__(self, catalogue: Catalogue, circumstances: Circumstances) -> None:
        self._here = circumstances
        self._catalogue = catalogue
        self._checks: dict[tuple[str, str], tuple[_Check, ...]] = {
            (technique.name, option.name): self._compiled(option)
            for technique in catalogue.techniques.values()
            for option in technique.options.values()
        }
        batch, arguments = circumstances.numbers.get("batch"), circumstances.arguments
        self._work = Work(catalogue, circumstances.trainer, batch, arguments, circumstances.n_devices)

    def violations(self, choice: Mapping[str, ChosenOption]) -> tuple[str, ...]:
        """Return one sentence for each rule that `choice` breaks.

        Raises:
            UnknownOption: If the choice names what is not in the catalogue.
        """
        broken: list[str] = []
        for technique, chosen in choice.items():
            checks = self._checks.get((technique, chosen.option))
            if checks is None:
                self._catalogue.option(technique, chosen.option)  # raises, and lists what there is
                continue
            for check in checks:
                sentence = check(choice)
                if sentence is not None:
                    broken.append(sentence)
        broken.extend(self._work.problems(choice))
        return tuple(broken)

    def _compiled(self, option: Option) -> tuple[_Check, ...]:
        checks: list[_Check] = [_always(sentence) for sentence in unmet(option, self._here)]
        checks.append(unknown_names(option, self._catalogue))
        checks.extend(unfit_value(option, parameter) for parameter in option.parameters.values())
        checks.extend(self._rule(option, rule) for rule in option.rules if _applies(rule, self._here))
        return tuple(checks)

    def _rule(self, option: Option, rule: Rule) -> _Check:
        here, wanted = self._here, rule.kind is RuleKind.REQUIRES
        # Claims about the circumstances are settled here; what is left of an alternative is about the choice.
        alternatives = []
        for part in rule.any_of:
            settled = [c for c in part.values() if is_circumstance(c.key)]
            if all(c.holds(_given(c.key, here), here.numbers) for c in settled):
                alternatives.append((tuple(c for c in part.values() if c not in settled), part))

        def check(choice: _Facts) -> str | None:
            for conditions, part in alternatives:
                for condition in conditions:
                    if not condition.holds(_fact(condition.key, choice, here), here.numbers):
                        break
                else:
                    return None if wanted else _excluded(option, rule, part, choice, here)
            return _lacking(option, rule, choice, here) if wanted else None

        return check


def _fact(key: str, choice: _Facts, here: Circumstances) -> Any:
    """Return the fact that a condition is about; None when the chosen option lacks that parameter."""
    chosen = choice.get(key)
    if chosen is not None:
        return chosen.option
    if is_circumstance(key):
        return _given(key, here)
    technique, _, parameter = key.partition(".")
    chosen = choice.get(technique)
    if not parameter:
        return BASELINE
    return None if chosen is None else chosen.parameters.get(parameter)


def _given(key: str, here: Circumstances) -> Any:
    """Return a fact of the circumstances; None when the configuration does not set it."""
    if key.startswith(ARGUMENT):
        return (here.arguments or {}).get(key.removeprefix(ARGUMENT))
    return here.numbers.get(key) if key in NUMBERS else getattr(here, key)


def _lacking(option: Option, rule: Rule, choice: _Facts, here: Circumstances) -> str:
    parts = [" and ".join(c.text(here.numbers) for c in part.values()) for part in rule.any_of]
    keys = dict.fromkeys(key for part in rule.any_of for key in part)
    got = ", ".join(_got(key, choice, here) for key in keys)
    sentence = f"{option.label} needs {', or '.join(parts)}, got {got}: {rule.because} ({rule.source})"
    return sentence + _remedy(rule, choice, here)


def _remedy(rule: Rule, choice: _Facts, here: Circumstances) -> str:
    """Return what to type, where fields of the trainer's arguments are all that an alternative lacks.

    Options are typed as the sentence writes them; of a field it writes no value.
    """
    for part in rule.any_of:
        lacking = [c for c in part.values() if not c.holds(_fact(c.key, choice, here), here.numbers)]
        if all(condition.key.startswith(ARGUMENT) for condition in lacking):
            return "; " + " and ".join(condition.remedy(here.numbers) for condition in lacking)
    return ""


def _excluded(option: Option, rule: Rule, part: Iterable[str], choice: _Facts, here: Circumstances) -> str:
    got = ", ".join(_got(key, choice, here) for key in part)
    return f"{option.label} does not go with {got}: {rule.because} ({rule.source})"


def _got(key: str, choice: _Facts, here: Circumstances) -> str:
    fact = _fact(key, choice, here)
    if fact is not None:
        return f"{key}={fact}"
    if is_circumstance(key):
        return f"{key} not set"
    technique = key.partition(".")[0]
    return f"{technique}={_fact(technique, choice, here)}"


def _applies(rule: Rule, here: Circumstances) -> bool:
    if rule.trainers and here.trainer not in rule.trainers:
        return False
    for package, specifier in rule.versions.items():
        installed = here.versions.get(package)
        if installed is None or not SpecifierSet(specifier).contains(installed, prereleases=True):
            return False
    return all(_is_known(key, here) for part in rule.any_of for key in part)


def _is_known(key: str, here: Circumstances) -> bool:
    if key in NUMBERS:
        return key in here.numbers
    return here.arguments is not None or not key.startswith(ARGUMENT)


def _always(sentence: str) -> _Check:
    return lambda _: sentence
