"""Which option works in which trainer: the catalogue's rules asked about one option at a time.

Nothing is listed here.  Each cell is what the rules say of that option with all else at its baseline; where
that is refused, of that option together with one or two others that its rules name.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from memsweep.machine import Device
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.compatibility import Circumstances, circumstances_here, violations
from memsweep.technique.option import BASELINE, Needs, Option
from memsweep.technique.rule import ARGUMENT, NUMBERS, Condition, is_circumstance

ANYTHING = "0"
"""A version for a package that no bound is set on."""


_SEEN = {
    "source": "not verified on hardware",
    "simulated": "seen on a CPU with launch=cpu_simulated, not verified on several devices",
}
"""What is said of an option that was not seen to work as it is meant to be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What the rules say of one option in one trainer.

    Attributes:
        technique: The option's folder.
        name: The option's file.
        trainer: The trainer's name.
        partners: What must be set with it, each alternative a mapping of technique to option (or of another
            fact that a rule is about to its value); empty when nothing.
        needs: What this machine lacks for it; empty when nothing.
        wants: What it needs of any machine, in words; empty when nothing.
        verified: On what its effect was seen: `cpu`, `simulated`, `hardware`, or `source` (read, not run).
        reasons: Why it is refused whatever is chosen with it; empty when it works.
    """

    technique: str
    name: str
    trainer: str
    partners: tuple[Mapping[str, Any], ...]
    needs: tuple[str, ...]
    wants: str
    verified: str
    reasons: tuple[str, ...]

    @property
    def option(self) -> str:
        """`adapter=lora`."""
        return f"{self.technique}={self.name}"

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {"option": self.option, **dataclasses.asdict(self), "verdict": self.word}

    @property
    def word(self) -> str:
        """`yes`, `with` (something else), `needs` (another machine), `simulated`, `unverified` or `no`."""
        if self.reasons:
            return "no"
        if self.verified == "source":
            return "unverified"
        if self.verified == "simulated":
            return "simulated"
        if self.needs:
            return "needs"
        return "with" if self.partners else "yes"

    @property
    def text(self) -> str:
        """The verdict as a phrase."""
        if self.reasons:
            return "; ".join(self.reasons)
        parts = [_SEEN[self.verified]] if self.verified in _SEEN else []
        parts += [f"needs {', '.join(self.needs)}"] if self.needs else []
        parts += [f"with {', or '.join(_grouped(self.partners))}"] if self.partners else []
        return "; ".join(parts) or "yes"


LEGEND = (
    "yes: works with all else at its baseline. with: works together with other options. "
    "needs: works, but not on this machine. simulated: works with launch=cpu_simulated, several processes on "
    "a CPU; not verified on several devices. unverified: works by its source code; not verified on hardware. "
    "no: refused. The reasons: memsweep techniques --trainer NAME"
)
"""What the words in `by_trainer` mean."""


def by_trainer(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table with one row an option and one column a trainer."""
    trainers = list(dict.fromkeys(cell.trainer for cell in cells))
    words: dict[str, dict[str, str]] = {}
    wants: dict[str, str] = {}
    for cell in cells:
        words.setdefault(cell.option, {})[cell.trainer] = cell.word
        wants[cell.option] = cell.wants
    rows = [[option, *(row[name] for name in trainers), wants[option]] for option, row in words.items()]
    return ["option", *trainers, "needs"], rows


def reasons(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table with one row a cell, and the verdict as a phrase."""
    rows = [[cell.option, cell.word, "" if cell.word == "yes" else cell.text] for cell in cells]
    return ["option", cells[0].trainer if cells else "", "why"], rows


def support(
    catalogue: Catalogue, trainers: Sequence[str] = (), asked: Device = Device.AUTO
) -> tuple[Cell, ...]:
    """Return every option but the baselines in every trainer, in the catalogue's order.

    Args:
        catalogue: Where the rules are.
        trainers: Which trainers; empty means all of the catalogue's.
        asked: `launch.device`.
    """
    techniques = catalogue.techniques.values()
    options = [o for technique in techniques for o in technique.options.values() if o.name != BASELINE]
    columns = []
    for trainer in trainers or catalogue.trainers:
        here = circumstances_here(trainer, asked, catalogue, numbers=dict.fromkeys(NUMBERS, 0), arguments={})
        devices = dict.fromkeys((here.device, Device.CUDA.value))
        granted = [_granted(here, device, options) for device in devices]
        columns.append([_cell(option, here, granted, catalogue) for option in options])
    return tuple(itertools.chain.from_iterable(zip(*columns, strict=True)))


def _cell(
    option: Option, here: Circumstances, granted: Sequence[Circumstances], catalogue: Catalogue
) -> Cell:
    needs: tuple[str, ...] = ()
    partners: tuple[Mapping[str, Any], ...] = ()
    refused: tuple[str, ...] = ()
    for circumstances in granted:
        refused = _refusals(option, {}, circumstances, catalogue)
        found = _partners(option, circumstances, catalogue) if refused else []
        if not refused or found:
            device = circumstances.device
            lacking = [_lacking(option, partner, here, device, catalogue) for partner in found]
            at_hand = [partner for partner, lacks in zip(found, lacking, strict=True) if not lacks]
            own = _lacking(option, {}, here, device, catalogue)
            needs = min(lacking, key=len, default=own)
            partners, refused = tuple(at_hand or found), ()
            break
    return Cell(
        technique=option.technique,
        name=option.name,
        trainer=here.trainer,
        partners=partners,
        needs=needs,
        wants=_wants(option.needs),
        verified=option.needs.verified,
        reasons=refused,
    )


def _wants(needs: Needs) -> str:
    """Return what an option needs of any machine, in words."""
    words = [needs.device] if needs.device != "any" else []
    words += [f"compute capability {needs.min_compute_capability}"] if needs.min_compute_capability else []
    words += [*needs.packages]
    words += ["the network"] if needs.network else []
    words += ["several devices"] if needs.several_devices else []
    words += ["a process beside the trial"] if needs.several_processes else []
    return ", ".join(words)


def _granted(here: Circumstances, device: str, options: Sequence[Option]) -> Circumstances:
    """Return `here` with all that any option needs of a machine, so that only rules can refuse one."""
    versions = dict(here.versions)
    for text in (text for option in options for text in option.needs.packages):
        wanted = Requirement(text)
        if not wanted.specifier.contains(versions.setdefault(wanted.name, ANYTHING), prereleases=True):
            bounds = [spec.version for spec in wanted.specifier if spec.operator in (">=", "==", "~=")]
            versions[wanted.name] = max(bounds, key=Version)
    return dataclasses.replace(
        here,
        device=device,
        versions=versions,
        compute_capability=None,
        network=True,
        several_devices=True,
        several_processes=True,
    )


def _lacking(
    option: Option, partner: Mapping[str, Any], here: Circumstances, device: str, catalogue: Catalogue
) -> tuple[str, ...]:
    """Return what the option and its partner need, and this machine or this version does not give."""
    lacking = [device] if device != here.device else []
    options = [catalogue.option(*chosen) for chosen in partner.items() if chosen[0] in catalogue.techniques]
    for needs in (option.needs, *(other.needs for other in options)):
        for text in needs.packages:
            wanted = Requirement(text)
            installed = here.versions.get(wanted.name)
            if installed is None or not wanted.specifier.contains(installed, prereleases=True):
                lacking.append(text)
        if needs.several_devices and not here.several_devices:
            lacking.append("several devices, or launch=cpu_simulated")
        if needs.several_processes and not here.several_processes:
            lacking.append("a process beside the trial")
        if needs.network and not here.network:
            lacking.append("the network")
    return tuple(dict.fromkeys(lacking))


def _partners(option: Option, granted: Circumstances, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what makes the option legal: single facts, or else the first pair; empty when nothing."""
    for n_partners in (1, 2):
        found = [
            partner
            for partner in _named(option, n_partners, catalogue)
            if not _refusals(option, partner, granted, catalogue)
        ]
        if found:
            return found if n_partners == 1 else found[:1]
    return []


def _grouped(partners: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return partners in words, single ones of one technique joined: `adapter=lora or dora`."""
    singles: dict[str, list[str]] = {}
    for partner in partners:
        if len(partner) == 1:
            ((technique, name),) = partner.items()
            singles.setdefault(technique, []).append(str(name))
    pairs = [" and ".join(f"{t}={name}" for t, name in p.items()) for p in partners if len(p) > 1]
    return tuple([f"{technique}={' or '.join(names)}" for technique, names in singles.items()] + pairs)


def _named(option: Option, n_partners: int, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """Yield facts, other than baselines, that the option's rules are about."""
    values: dict[str, list[Any]] = {}
    for key, condition in (pair for rule in option.rules for part in rule.any_of for pair in part.items()):
        technique = key.partition(".")[0]
        if technique in catalogue.techniques and technique != option.technique:
            values[technique] = [o for o in catalogue.techniques[technique].options if o != BASELINE]
        elif key.startswith(ARGUMENT) or key in NUMBERS:
            values.setdefault(key, []).extend(_fitting(condition))
    for keys in itertools.combinations(values, n_partners):
        for chosen in itertools.product(*(values[key] for key in keys)):
            yield dict(zip(keys, chosen, strict=True))


def _fitting(condition: Condition) -> list[Any]:
    """Return values of which each is as `condition` claims, or, for an exclusion, is not."""
    bounds = [bound for bound in (condition.at_least, condition.at_most) if bound is not None]
    return [
        *condition.allowed[:1],
        *bounds,
        *([condition.above + 0.1] if condition.above is not None else []),
    ]


def _refusals(
    option: Option, partner: Mapping[str, Any], granted: Circumstances, catalogue: Catalogue
) -> tuple[str, ...]:
    """Return the rules that the option breaks together with `partner`, all else at its baseline."""
    options = {key: name for key, name in partner.items() if not is_circumstance(key)}
    arguments = {k.removeprefix(ARGUMENT): v for k, v in partner.items() if k.startswith(ARGUMENT)}
    numbers = {key: number for key, number in partner.items() if key in NUMBERS}
    circumstances = dataclasses.replace(
        granted,
        arguments={**(granted.arguments or {}), **arguments},
        numbers={**granted.numbers, **numbers},
    )
    choice = catalogue.choose({option.technique: option.name, **options})
    return violations(choice, circumstances, catalogue)
