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
from memsweep.technique.choice import ChosenOption
from memsweep.technique.compatibility import Circumstances, circumstances_here, violations
from memsweep.technique.option import BASELINE, Option

ANYTHING = "0"
"""A version for a package that no bound is set on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What the rules say of one option in one trainer.

    Attributes:
        option: `adapter=lora`.
        trainer: The trainer's name.
        partners: What must be chosen with it, each alternative in words; empty when nothing.
        needs: What this machine lacks for it; empty when nothing.
        reasons: Why it is refused whatever is chosen with it; empty when it works.
    """

    option: str
    trainer: str
    partners: tuple[str, ...]
    needs: tuple[str, ...]
    reasons: tuple[str, ...]

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {**dataclasses.asdict(self), "verdict": self.word}

    @property
    def word(self) -> str:
        """`yes`, `with` (something else), `needs` (another machine) or `no`."""
        if self.reasons:
            return "no"
        if self.needs:
            return "needs"
        return "with" if self.partners else "yes"

    @property
    def text(self) -> str:
        """The verdict as a phrase."""
        if self.reasons:
            return "; ".join(self.reasons)
        parts = [f"needs {', '.join(self.needs)}"] if self.needs else []
        parts += [f"with {', or '.join(self.partners)}"] if self.partners else []
        return "; ".join(parts) or "yes"


LEGEND = (
    "yes: works with all else at its baseline. with: works together with other options. "
    "needs: works, but not on this machine. no: refused. "
    "The reasons: memsweep techniques --trainer NAME"
)
"""What the words in `by_trainer` mean."""


def by_trainer(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table with one row an option and one column a trainer."""
    trainers = list(dict.fromkeys(cell.trainer for cell in cells))
    words: dict[str, dict[str, str]] = {}
    for cell in cells:
        words.setdefault(cell.option, {})[cell.trainer] = cell.word
    rows = [[option, *(row[trainer] for trainer in trainers)] for option, row in words.items()]
    return ["option", *trainers], rows


def reasons(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table with one row a cell, and the verdict as a phrase."""
    rows = [[cell.option, cell.word, "" if cell.word == "yes" else cell.text] for cell in cells]
    return ["option", cells[0].trainer if cells else "", "why"], rows


def support(catalogue: Catalogue, trainers: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Return every option but the baselines in every trainer, in the catalogue's order.

    Args:
        catalogue: Where the rules are.
        trainers: Which trainers; empty means all of the catalogue's.
    """
    techniques = catalogue.techniques.values()
    options = [o for technique in techniques for o in technique.options.values() if o.name != BASELINE]
    columns = []
    for trainer in trainers or catalogue.trainers:
        here = circumstances_here(trainer, Device.AUTO, catalogue)
        devices = dict.fromkeys((here.device, Device.CUDA.value))
        granted = [_granted(here, device, options) for device in devices]
        columns.append([_cell(option, here, granted, catalogue) for option in options])
    return tuple(itertools.chain.from_iterable(zip(*columns, strict=True)))


def _cell(
    option: Option, here: Circumstances, granted: Sequence[Circumstances], catalogue: Catalogue
) -> Cell:
    refused: tuple[str, ...] = ()
    for circumstances in granted:
        refused = violations(_chosen(option, {}, catalogue), circumstances, catalogue)
        partners = _partners(option, circumstances, catalogue) if refused else []
        if not refused or partners:
            device = circumstances.device
            lacking = [_lacking(option, partner, here, device, catalogue) for partner in partners]
            at_hand = [partner for partner, lacks in zip(partners, lacking, strict=True) if not lacks]
            own = _lacking(option, {}, here, device, catalogue)
            return Cell(
                option=option.label,
                trainer=here.trainer,
                partners=_grouped(at_hand or partners),
                needs=min(lacking, key=len, default=own),
                reasons=(),
            )
    return Cell(option=option.label, trainer=here.trainer, partners=(), needs=(), reasons=refused)


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
        several_processes=True,
    )


def _lacking(
    option: Option, partner: Mapping[str, str], here: Circumstances, device: str, catalogue: Catalogue
) -> tuple[str, ...]:
    """Return what the option and its partner need, and this machine or this version does not give."""
    lacking = [device] if device != here.device else []
    for needs in (option.needs, *(catalogue.option(*other).needs for other in partner.items())):
        for text in needs.packages:
            wanted = Requirement(text)
            installed = here.versions.get(wanted.name)
            if installed is None or not wanted.specifier.contains(installed, prereleases=True):
                lacking.append(text)
        if needs.several_processes and not here.several_processes:
            lacking.append("several processes a trial")
        if needs.network and not here.network:
            lacking.append("the network")
    return tuple(dict.fromkeys(lacking))


def _partners(option: Option, granted: Circumstances, catalogue: Catalogue) -> list[dict[str, str]]:
    """Return what makes the option legal: single options, or else the first pair; empty when nothing."""
    for n_partners in (1, 2):
        found = [
            partner
            for partner in _named(option, n_partners, catalogue)
            if not violations(_chosen(option, partner, catalogue), granted, catalogue)
        ]
        if found:
            return found if n_partners == 1 else found[:1]
    return []


def _grouped(partners: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return partners in words, single ones of one technique joined: `adapter=lora or dora`."""
    singles: dict[str, list[str]] = {}
    for partner in partners:
        if len(partner) == 1:
            ((technique, name),) = partner.items()
            singles.setdefault(technique, []).append(name)
    pairs = [" and ".join(f"{t}={name}" for t, name in p.items()) for p in partners if len(p) > 1]
    return tuple([f"{technique}={' or '.join(names)}" for technique, names in singles.items()] + pairs)


def _named(option: Option, n_partners: int, catalogue: Catalogue) -> Iterator[dict[str, str]]:
    """Yield choices of options, other than baselines, of techniques that the option's rules are about."""
    keys = [key.partition(".")[0] for rule in option.rules for part in rule.any_of for key in part]
    others = [key for key in dict.fromkeys(keys) if key in catalogue.techniques and key != option.technique]
    for techniques in itertools.combinations(others, n_partners):
        options = [[o for o in catalogue.techniques[t].options if o != BASELINE] for t in techniques]
        for names in itertools.product(*options):
            yield dict(zip(techniques, names, strict=True))


def _chosen(option: Option, partner: Mapping[str, str], catalogue: Catalogue) -> Mapping[str, ChosenOption]:
    return catalogue.choose({option.technique: option.name, **partner})
