"""The whole matrix, options by trainers: what the catalogue says of each pair, and what the libraries do.

A pair is proven to work when a real trainer takes two steps with it, everything asked for in force; proven
refused when our rules refuse it before any trainer exists and the libraries, rules bypassed, raise, leave it
out, or ignore it; unverifiable where it needs what this machine has not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from seen import BATCH, Seen, float32_as_baseline, walk_config, watch

from memsweep.machine import Device
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.compatibility import Circumstances, circumstances_here, violations
from memsweep.technique.rule import ARGUMENT, NUMBERS
from memsweep.technique.settings import merge
from memsweep.technique.support import Cell, support
from tiny import tiny_config

# Values at which an option shows on texts of 20 to 90 tokens; the defaults suit real models.
PARAMETERS: Mapping[str, Any] = {
    "technique.truncation.max_length": 48,
    "technique.adapter.r": 4,
    "technique.adapter.alpha": 8,
    "technique.generations.n": 4,
    "technique.completion_length.tokens": 4,
}

PARAMETERS_BY_TRAINER: Mapping[str, Mapping[str, Any]] = {
    "online_dpo": {"technique.truncation.max_length": 24},  # it limits prompts, which are shorter
}

# Where one of several partners shows more than the first.
LAYERS = "model.geometry.num_hidden_layers"
EVALUATED = {"packing": "bfd", "measure.evaluation_examples": 4}
PARTNERS: Mapping[str, Mapping[str, Any]] = {
    "padding_free=enabled": {"truncation": "none"},
    "truncation=none": {"trainer.arguments.max_length": 48},
    "compile=enabled": {LAYERS: 1},  # four take twice as long to compile
    "evaluation_packing=enabled": EVALUATED,
    "evaluation_packing=disabled": EVALUATED,
    "reference=sync": {"trainer.arguments.ref_model_sync_steps": 1, "trainer.arguments.beta": 0.1},
}

# Other completions are drawn: the same work on other numbers.
DRAWS_ANEW = {("micro_batch=size", "online_dpo")}  # it generates for each micro-batch by itself

# For a choice that holds one of these techniques: fewer seconds, the same contract.
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"compile": {"torch_compile_backend": "eager"}}


class Fate(StrEnum):
    """What the libraries make of a choice."""

    WORKS = "works"
    RAISES = "raises"
    NOT_IN_FORCE = "not in force"
    IGNORED = "ignored"
    SILENT = "acts, and nothing says that it should not"


@dataclass(frozen=True, slots=True)
class Result:
    """How a choice fared.

    Attributes:
        fate: In a word.
        message: What was raised or missing.
        seen: What two steps did; None where there were none.
    """

    fate: Fate
    message: str
    seen: Seen | None = None


class Walk:
    """Runs choices on the tiny models, each once."""

    def __init__(self, catalogue: Catalogue, folder: Path) -> None:
        self.catalogue = catalogue
        self.cells = {(cell.option, cell.trainer): cell for cell in cells(catalogue)}
        self.folder = folder
        self._results: dict[str, Result] = {}

    def run(self, trainer: str, options: Mapping[str, Any], *, again: bool = False) -> Result:
        """Let the libraries do what `options` set, whatever the rules say of it.

        Args:
            trainer: Its name.
            options: Technique to option; `trainer.arguments.<field>` to a value; a parameter to its value.
            again: Run it even if it was run before.
        """
        key = _key(trainer, options)
        if again:
            return attempt(trainer, options, self.folder, self.catalogue)
        if key not in self._results:
            self._results[key] = self.run(trainer, options, again=True)
        return self._results[key]

    def baseline(self, trainer: str, options: Mapping[str, Any]) -> Seen:
        """Return what is seen with `options`, which must work."""
        result = self.run(trainer, options)
        assert result.seen is not None, f"{trainer} {options}: {result.message}"
        return result.seen

    def choice(self, trainer: str, options: Mapping[str, Any]) -> dict[str, ChosenOption]:
        """Return the complete choice that `options` make, at values that show on short texts."""
        return choice(trainer, options, self.catalogue)

    def refusals(self, trainer: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the sentences with which the rules refuse `options` here."""
        return refusals(trainer, options, self.catalogue)

    def probe(self, trainer: str, technique: str, options: Mapping[str, Any]) -> Result:
        """Let the libraries do what the rules refuse, and tell what came of it.

        Args:
            trainer: Its name.
            technique: Whose option is asked about.
            options: It, and what else is chosen.
        """
        result = self.run(trainer, options)
        if result.fate is not Fate.WORKS or result.seen is None:
            return result
        own = f"technique.{technique}."
        rest = {key: value for key, value in options.items() if key != technique and not key.startswith(own)}
        without = self.run(trainer, rest).seen
        if without is not None and not result.seen.differences_to(without):
            return Result(Fate.IGNORED, "two steps were the same as without it", result.seen)
        return Result(Fate.SILENT, "", result.seen)

    def partner(self, cell: Cell) -> Mapping[str, Any]:
        """Return what the option needs beside it; where it is refused, what it needs in another trainer."""
        if cell.option in PARTNERS:
            return PARTNERS[cell.option]
        if cell.partners or not cell.reasons:
            return cell.partners[0] if cell.partners else {}
        elsewhere = (other.partners[0] for other in self._siblings(cell) if other.partners)
        return next((p for p in elsewhere if p.keys() <= self.catalogue.techniques.keys()), {})

    def _siblings(self, cell: Cell) -> Iterator[Cell]:
        return (other for other in self.cells.values() if other.option == cell.option)


def attempt(
    trainer: str, options: Mapping[str, Any], folder: Path, catalogue: Catalogue | None = None
) -> Result:
    """Let a real trainer take two steps with `options`, and tell how it fared.

    Args:
        trainer: Its name.
        options: As for `Walk.run`.
        folder: Where it may write.
        catalogue: What the options set; the project's own when None.
    """
    arguments = _arguments(options)
    for technique in options:
        arguments |= ARGUMENTS.get(technique, {})
    catalogue = catalogue or installed_catalogue()
    settings = merge(choice(trainer, options, catalogue), trainer, catalogue)
    config = walk_config(
        trainer,
        folder,
        arguments,
        n_layers=options.get(LAYERS),
        n_evaluation=options.get("measure.evaluation_examples", 0),
    )
    try:
        seen = watch(config, settings, folder)
    except Exception as error:
        return Result(Fate.RAISES, f"{type(error).__name__}: {str(error).strip()[:300]}")
    if not all(math.isfinite(loss) for loss in seen.losses):
        return Result(Fate.RAISES, f"losses are {seen.losses}")
    if seen.missing:
        return Result(Fate.NOT_IN_FORCE, "; ".join(seen.missing), seen)
    return Result(Fate.WORKS, "", seen)


def silent_on_one_thread() -> None:
    """Make this process one that walks."""
    torch.set_num_threads(1)  # tiny matrices: more threads only wait for each other
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")


@lru_cache
def installed_catalogue() -> Catalogue:
    """Return the catalogue, read once a process."""
    return read_catalogue(conf_folder())


def _key(trainer: str, options: Mapping[str, Any]) -> str:
    return f"{trainer} {sorted(options.items())}"


def choice(trainer: str, options: Mapping[str, Any], catalogue: Catalogue) -> dict[str, ChosenOption]:
    """Return the complete choice that `options` make, at values that show on short texts."""
    chosen = {key: name for key, name in options.items() if key in catalogue.techniques}
    known = catalogue.choose(chosen)
    fitting = {
        key: value
        for key, value in {**PARAMETERS, **PARAMETERS_BY_TRAINER.get(trainer, {})}.items()
        if key.rpartition(".")[2] in known[key.split(".")[1]].parameters
    }
    given = {key: value for key, value in options.items() if key.startswith("technique.")}
    return catalogue.choose(chosen, {**fitting, **given})


def refusals(trainer: str, options: Mapping[str, Any], catalogue: Catalogue) -> tuple[str, ...]:
    """Return the sentences with which the rules refuse `options` on this machine's processor."""
    given = {**tiny_config(trainer).trainer.arguments, **_arguments(options)}
    arguments = tuple(sorted(given.items()))
    numbers = tuple((key, options.get(key, 0)) for key in NUMBERS if key != "batch")
    here = _here(trainer, arguments, (("batch", BATCH), *numbers), catalogue)
    return violations(choice(trainer, options, catalogue), here, catalogue)


@lru_cache
def _here(trainer: str, arguments: Any, numbers: Any, catalogue: Catalogue) -> Circumstances:
    with float32_as_baseline():
        return circumstances_here(
            trainer, Device.CPU, catalogue, numbers=dict(numbers), arguments=dict(arguments)
        )


def cells(catalogue: Catalogue) -> tuple[Cell, ...]:
    """Return what the rules say of every option in every trainer on this machine's processor."""
    with float32_as_baseline():
        return support(catalogue, asked=Device.CPU)


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(ARGUMENT): v for key, v in options.items() if key.startswith(ARGUMENT)}
