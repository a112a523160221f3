"""The trials that explain a front."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.record.asked import Origin
from memsweep.search.proposal import Proposal
from memsweep.search.space import Cell, Space
from memsweep.search.verdict import Verdict
from memsweep.study.ladder import Ladder, alone, rungs

PARSER = OverridesParser.create()
SPACE = Space(
    entries=tuple(
        searched(PARSER.parse_override(text), 0)
        for text in (
            "adapter=none,lora",
            "quantization=none,nf4,int8",
            "packing=none,bfd",
            "lr=interval(0.0,1.0)",
        )
    )
)
BASELINE = SPACE.cell({})
TOP = SPACE.cell({"adapter": "lora", "quantization": "nf4", "packing": "bfd"})


def is_legal(cell: Cell) -> bool:
    """4- and 8-bit weights need an adapter."""
    labels = SPACE.labels(cell)
    return labels["quantization"] == "none" or labels["adapter"] == "lora"


def changed(cells: list[Cell]) -> list[set[str]]:
    """Return what each cell has that the baseline does not."""
    return [set(cell) - set(BASELINE) - {None} for cell in cells]  # type: ignore[misc]


def test_every_option_that_can_stand_alone_is_tried_alone() -> None:
    assert changed(list(alone(SPACE, BASELINE, is_legal))) == [{"lora"}, {"bfd"}]


def test_each_rung_has_one_choice_more_than_the_one_below() -> None:
    assert changed(rungs(SPACE, BASELINE, TOP, is_legal)) == [{"lora"}, {"lora", "nf4"}]


def test_a_choice_waits_for_the_one_that_it_needs() -> None:
    order = Space(entries=(SPACE.entries[1], SPACE.entries[0]))
    top = order.cell({"adapter": "lora", "quantization": "nf4"})
    found = rungs(order, order.cell({}), top, lambda cell: cell[0] == "none" or cell[1] == "lora")

    assert found == [("none", "lora")]


def test_what_is_legal_only_together_is_one_rung() -> None:
    def together(cell: Cell) -> bool:
        return (cell[0] == "lora") == (cell[1] == "nf4")

    found = rungs(SPACE, BASELINE, TOP, together)

    assert changed(found) == [{"bfd"}]


def test_one_step_needs_no_rungs() -> None:
    assert rungs(SPACE, BASELINE, SPACE.cell({"packing": "bfd"}), is_legal) == []


def test_where_there_is_no_way_up_the_ladder_ends() -> None:
    assert rungs(SPACE, BASELINE, TOP, lambda cell: cell in (BASELINE, TOP)) == []


@pytest.mark.parametrize(
    ("changes", "first"),
    [({"lora": ("trained parameters",)}, "bfd"), ({"bfd": ("batch",)}, "lora"), ({}, "lora")],
)
def test_what_leaves_the_training_as_it_is_is_tried_alone_first(
    changes: Mapping[str, tuple[str, ...]], first: str
) -> None:
    asked: list[Cell] = []

    def verdict(cell: Cell) -> Verdict:
        return Verdict(
            changes=tuple(change for label in cell for change in changes.get(str(label), ())),
            requested_hash=str(cell),
        )

    def of_cell(cell: Cell) -> Proposal:
        asked.append(cell)
        trial: Any = None
        return Proposal(overrides=(), parameters={}, inside={}, verdict=verdict(cell), trial=trial)

    asker = SimpleNamespace(
        space=SPACE,
        is_legal=is_legal,
        is_tried=lambda cell: False,
        legal=SimpleNamespace(verdict=verdict),
        of_cell=of_cell,
    )
    book = SimpleNamespace(front=(), study=SimpleNamespace(objectives={}), same_request=lambda request: None)

    proposal = Ladder(cast(Any, asker), cast(Any, book), BASELINE, n_reserved=2).next(2)

    assert changed(asked) == [{first}]
    assert proposal is not None and proposal.origin is Origin.LADDER
