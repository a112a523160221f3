"""Choices that break no rule, drawn at random over all techniques: what is legal must work together too."""

from __future__ import annotations

import random
from collections.abc import Mapping

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


CHOICES = [
    pytest.param(trainer, choice, id=f"{trainer} " + " ".join(f"{t}={o}" for t, o in choice.items()))
    for trainer in CATALOGUE.trainers
    for choice in (drawn(trainer, CATALOGUE, number) for number in range(N_A_TRAINER))
]


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "choice"), CHOICES)
def test_a_legal_choice_works(trainer: str, choice: Mapping[str, str], walk: Walk) -> None:
    result = walk.run(trainer, choice)

    assert result.fate is Fate.WORKS or TOO_SMALL in result.message, result.message
