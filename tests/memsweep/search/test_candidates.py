"""The legal cells that a model chooses among."""

from __future__ import annotations

import random

from hydra.core.override_parser.overrides_parser import OverridesParser

from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.search.candidates import LegalCandidates
from memsweep.search.legal import LegalCells
from memsweep.search.space import Cell, Space
from memsweep.search.verdict import Request, Verdict

PARSER = OverridesParser.create()


def space_of(*texts: str) -> Space:
    return Space(entries=tuple(searched(PARSER.parse_override(text), 0) for text in texts))


SMALL = space_of("x=a,b,c", "y=1,2")
LARGE = space_of(*(f"k{index}=a,b,c,d" for index in range(12)))


def judge(request: Request) -> Verdict:
    """Forbid x=c; what ends in y=2 asks for the same as y=1."""
    text = " ".join(request.rest)
    broken = ("no c",) if "x=c" in text else ()
    return Verdict(violations=broken, requested_hash=text.replace("y=2", "y=1"))


def offer(space: Space, seed: int = 0, tried: set[Cell] | None = None) -> LegalCandidates:
    rng = random.Random(seed)
    return LegalCandidates(space, LegalCells(space, judge, rng), rng, set() if tried is None else tried)


def test_of_a_small_space_every_legal_cell_is_offered() -> None:
    rows, may_try = offer(SMALL).offered([])

    assert (
        sorted(tuple(rows[index].values()) for index in may_try)
        == [
            ("a", 1),
            ("a", 2),
            ("b", 1),
            ("b", 2),
        ]
        or len(may_try) == 4
    )


def test_what_was_tried_and_what_asks_for_the_same_is_not_offered_while_there_is_anything_else() -> None:
    tried: set[Cell] = set()
    candidates = offer(SMALL, tried=tried)
    candidates.offered([])
    cell = SMALL.cell({"x": "a", "y": "1"})
    tried.add(cell)
    candidates.asked_for(judge(SMALL.request(cell)).requested_hash)
    rows, may_try = candidates.offered([])

    assert {rows[index]["x"] for index in may_try} == {"b"}


def test_at_the_end_what_asks_for_the_same_is_offered_too() -> None:
    tried: set[Cell] = set()
    candidates = offer(SMALL, tried=tried)
    candidates.offered([])
    for x in "ab":
        cell = SMALL.cell({"x": x, "y": "1"})
        tried.add(cell)
        candidates.asked_for(judge(SMALL.request(cell)).requested_hash)
    _, may_try = candidates.offered([])

    assert len(may_try) == 2


def test_of_a_large_space_more_cells_come_with_every_question_and_keep_their_places() -> None:
    candidates = offer(LARGE)
    first, _ = candidates.offered([])
    before = list(first)
    again, may_try = candidates.offered([])

    assert len(again) > len(before) >= 1_000
    assert again[: len(before)] == before
    assert len({tuple(row.values()) for row in again}) == len(again)
    assert len(may_try) == len(again)


def test_every_neighbour_of_the_front_is_offered() -> None:
    candidates = offer(LARGE)
    row = dict.fromkeys((f"k{index}" for index in range(12)), "a")
    rows, _ = candidates.offered([row])
    offered = {tuple(one.values()) for one in rows}
    neighbours = {tuple({**row, key: other}.values()) for key in row for other in "bcd"}

    assert neighbours <= offered


def test_where_hardly_a_cell_is_legal_legal_ones_are_offered_all_the_same() -> None:
    def strict(request: Request) -> Verdict:
        n_wrong = sum(text.endswith("=d") for text in request.rest)
        return Verdict(violations=("no d",) if n_wrong else (), requested_hash=" ".join(request.rest))

    space = space_of(*(f"k{index}=a,d" for index in range(14)), *(f"j{index}=a,b,c" for index in range(4)))
    rng = random.Random(0)
    rows, _ = LegalCandidates(space, LegalCells(space, strict, rng), rng, set()).offered([])

    assert len(rows) > 20
    assert not any("d" in row.values() for row in rows)


def test_points_of_an_interval_are_offered_near_those_on_the_front() -> None:
    space = space_of("rate=tag(log,interval(1e-5,1e-1))", "x=a,b")
    rows, _ = offer(space).offered([{"rate": 1e-3, "x": "a"}])
    near = [row for row in rows if row["x"] == "a" and 3e-4 < row["rate"] < 3e-3]

    assert len(near) > 4
    assert all(1e-5 <= row["rate"] < 1e-1 for row in rows)
