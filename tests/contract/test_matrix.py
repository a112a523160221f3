"""Every option in every trainer: it works and does what it says, or it is refused and the libraries agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from effects import EFFECTS, Sight
from harms import harm
from walk import DRAWS_ANEW, Fate, Result, Walk, cells

from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.technique.option import Changes
from memsweep.technique.support import Cell

CATALOGUE = read_catalogue(conf_folder())
CELLS = cells(CATALOGUE)
WORKING = [cell for cell in CELLS if cell.word in ("yes", "with")]
REFUSED = [cell for cell in CELLS if cell.word == "no"]
ELSEWHERE = [cell for cell in CELLS if cell.word in ("needs", "simulated", "unverified")]

SLOW = {"compile=enabled"}
"""Tried in one trainer by `make test`, in the others by `make test-slow`: tracing takes ten seconds each."""


def named(chosen: list[Cell]) -> list[object]:
    def marks(cell: Cell) -> list[pytest.MarkDecorator]:
        return [pytest.mark.slow] if cell.option in SLOW and cell.trainer != "sft" else []

    return [pytest.param(cell, id=f"{cell.option}-{cell.trainer}", marks=marks(cell)) for cell in chosen]


def agrees(result: Result) -> bool:
    return result.fate in (Fate.RAISES, Fate.NOT_IN_FORCE, Fate.IGNORED)


@pytest.mark.parametrize("cell", named(WORKING))
def test_what_the_catalogue_says_works_does(cell: Cell, walk: Walk, proven: Callable[[str], None]) -> None:
    partner = walk.partner(cell)
    options = {**partner, cell.technique: cell.name}
    option = CATALOGUE.option(cell.technique, cell.name)

    assert walk.refusals(cell.trainer, options) == ()
    result = walk.run(cell.trainer, options)
    assert result.fate is Fate.WORKS, result.message
    assert result.seen is not None

    base = walk.baseline(cell.trainer, partner)
    seen = result.seen
    chosen = walk.choice(cell.trainer, options)[cell.technique]
    sight = Sight(
        seen=seen,
        base=base,
        trainer=cell.trainer,
        parameters=chosen.parameters,
        run=lambda name: walk.baseline(cell.trainer, {**partner, cell.technique: name}),
    )
    assert cell.option in EFFECTS, "say in effects.py what two steps with it must be seen to do"
    EFFECTS[cell.option](sight)
    if set(option.changes) == {Changes.NOTHING.value}:
        assert seen.tokens == base.tokens
    if set(option.changes) == {Changes.NOTHING.value} and (cell.option, cell.trainer) not in DRAWS_ANEW:
        assert seen.has_the_numbers_of(base), (
            seen.losses,
            base.losses,
            seen.gradient_norm,
            base.gradient_norm,
        )
    if Changes.TRAINED_PARAMETERS.value not in option.changes:
        assert seen.n_trained == base.n_trained
    proven("work")


@pytest.mark.parametrize("cell", named(REFUSED))
def test_what_the_catalogue_refuses_the_libraries_refuse_ignore_or_get_wrong(
    cell: Cell, walk: Walk, proven: Callable[[str], None]
) -> None:
    options = {**walk.partner(cell), cell.technique: cell.name}

    assert walk.refusals(cell.trainer, options)
    result = walk.probe(cell.trainer, cell.technique, options)
    if not agrees(result):
        shown = harm(cell.option, cell.trainer)
        assert shown is not None, f"out of date, two steps went well: {cell.reasons}"
        assert shown(walk, cell.trainer, options), f"shows nowhere: {cell.reasons}"
    proven("refused")


@pytest.mark.parametrize("cell", named(ELSEWHERE))
def test_what_needs_another_machine_is_refused_here(
    cell: Cell, walk: Walk, proven: Callable[[str], None]
) -> None:
    options = {**walk.partner(cell), cell.technique: cell.name}

    assert walk.refusals(cell.trainer, options)
    proven("unverifiable")
