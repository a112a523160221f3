"""An equality that is declared: the option's own settings, unused because of it, come to the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_matrix import CATALOGUE, WORKING
from walk import Walk

from memsweep.technique.catalogue import Catalogue
from memsweep.technique.option import Equivalence
from memsweep.technique.support import Cell


def bare() -> Catalogue:
    """Return the catalogue without equalities."""
    techniques = {
        name: replace(technique, options={o.name: replace(o, same_as=()) for o in technique.options.values()})
        for name, technique in CATALOGUE.techniques.items()
    }
    return replace(CATALOGUE, techniques=techniques)


CASES = [
    pytest.param(cell, equal, id=f"{cell.option}-{equal.option}-{cell.trainer}")
    for cell in WORKING
    for equal in CATALOGUE.option(cell.technique, cell.name).same_as
    if not equal.trainers or cell.trainer in equal.trainers
]


@pytest.fixture(scope="module")
def taken_apart(walk: Walk, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    return Walk(bare(), tmp_path_factory.mktemp("apart"))


@pytest.mark.parametrize(("cell", "equal"), CASES)
def test_options_that_are_said_to_be_equal_are(
    cell: Cell, equal: Equivalence, walk: Walk, taken_apart: Walk
) -> None:
    when = {technique: options[0] for technique, options in equal.when.items()}
    partner = {**walk.partner(cell), **when}
    values = {f"technique.{cell.technique}.{name}": value for name, value in equal.parameters.items()}
    options = {**partner, cell.technique: cell.name, **values}

    if taken_apart.refusals(cell.trainer, options):
        pytest.skip("not with the walk's batch")

    result = taken_apart.run(cell.trainer, options)
    assert result.seen is not None, result.message
    other = walk.baseline(cell.trainer, {**partner, cell.technique: equal.option})
    assert result.seen.differences_to(other) == ()
