"""The trials that explain a front."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.record.asked import Origin
from memsweep.search.proposal import Proposal
from memsweep.search.space import Cell, Space
from memsweep.search.verdict import Verdict
from memsweep.study import ladder
from memsweep.study.ladder import alone, rungs

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
    ("changes", "expected"),
    [
        pytest.param({"lora": ("trained parameters",)}, [{"bfd"}, {"lora"}, {"lora", "nf4"}], id="changes"),
        pytest.param({}, [{"lora"}, {"lora", "nf4"}, {"bfd"}], id="changes nothing"),
    ],
)
def test_what_leaves_the_training_as_it_is_comes_before_a_best_combination_that_does_not(
    changes: Mapping[str, tuple[str, ...]], expected: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Cell] = []

    def verdict(cell: Cell) -> Verdict:
        found = [change for label in cell for change in changes.get(str(label), ())]
        return Verdict(changes=tuple(found), requested_hash=str(cell))

    def of_cell(cell: Cell) -> Proposal:
        tried.append(cell)
        trial: Any = None
        return Proposal(overrides=(), parameters={}, inside={}, verdict=verdict(cell), trial=trial)

    asker: Any = SimpleNamespace(
        space=SPACE,
        is_legal=is_legal,
        is_tried=tried.__contains__,
        legal=SimpleNamespace(verdict=verdict),
        of_cell=of_cell,
    )
    top = SimpleNamespace(parameters={p.key: label for p, label in zip(SPACE.parameters, TOP, strict=True)})
    monkeypatch.setattr(ladder, "best", lambda front, study: top)
    book: Any = SimpleNamespace(front=(), study=None, same_request=lambda request: None)
    climbing = ladder.Ladder(asker, book, BASELINE, n_reserved=3)

    proposals = [climbing.next(n_left) for n_left in (4, 3, 2, 1)]

    assert changed(tried) == expected
    assert [proposal and proposal.origin for proposal in proposals] == [None, *[Origin.LADDER] * 3]
