"""Choices that break no rule, drawn at random over all techniques: what is legal must work together too."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from walk import Fate, Walk, refusals

from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.option import BASELINE

CATALOGUE = read_catalogue(conf_folder())
N_A_TRAINER = 15
SLOW = frozenset({"compile"})  # ten seconds each; the matrix has them alone

# A bitsandbytes optimizer keeps tensors of fewer than 4,096 numbers, as an adapter's are here, in 32 bits.
TOO_SMALL = "is kept in 32 bits"


def drawn(trainer: str, catalogue: Catalogue, number: int) -> Mapping[str, str]:
    """Return a legal choice of several options; the same for the same number."""
    source = random.Random(f"{trainer} {number}")
    names = [name for name in catalogue.techniques if name not in SLOW]
    while True:
        chosen: dict[str, str] = {}
        for technique in source.sample(names, len(names)):
            options = [name for name in catalogue.techniques[technique].options if name != BASELINE]
            more = {**chosen, technique: source.choice(options)}
            if source.random() < 0.5 and not refusals(trainer, more, catalogue):
                chosen = more
        if len(chosen) > 1:
            return dict(sorted(chosen.items()))


@dataclass(frozen=True, slots=True)
class Draw:
    """A legal choice of several options.

    Attributes:
        trainer: In which trainer.
        number: What it was drawn with.
        choice: Technique to option.
    """

    trainer: str
    number: int
    choice: Mapping[str, str]

    @property
    def name(self) -> str:
        """In words, for a test's name."""
        return f"{self.trainer} " + " ".join(f"{key}={value}" for key, value in self.choice.items())


DRAWS = [
    Draw(trainer, number, drawn(trainer, CATALOGUE, number))
    for trainer in CATALOGUE.trainers
    for number in range(N_A_TRAINER)
]


@pytest.mark.slow
@pytest.mark.parametrize("draw", [pytest.param(draw, id=draw.name) for draw in DRAWS])
def test_a_legal_choice_works(draw: Draw, walk: Walk) -> None:
    result = walk.run(draw.trainer, draw.choice)

    assert result.fate is Fate.WORKS or TOO_SMALL in result.message, result.message
