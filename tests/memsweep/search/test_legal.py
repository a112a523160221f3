"""Cells that may run, in spaces too large to list."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.search.legal import LegalCells
from memsweep.search.space import Space
from memsweep.search.verdict import Request, Verdict

NAMES = [f"t{index}" for index in range(12)]
SPACE = Space(
    entries=tuple(
        searched(OverridesParser.create().parse_override(f"technique/{name}=baseline,a,b,c"), seed=0)
        for name in NAMES
    ),
    techniques=frozenset(NAMES),
)


class Rules:
    """`a` of a technique needs `b` of the one before it; `c` goes with no other `c`."""

    techniques = frozenset(NAMES)

    def __init__(self) -> None:
        self.n_judged = 0

    def judge(self, request: Request) -> Verdict:
        self.n_judged += 1
        options = request.options
        broken = [
            f"{name} needs {before}"
            for before, name in itertools.pairwise(NAMES)
            if options[name] == "a" and options[before] != "b"
        ]
        broken += ["several c"] if list(options.values()).count("c") > 1 else []
        return Verdict(violations=tuple(broken))

    def option_of(self, technique: str) -> str:
        return "baseline"

    def parameters_of(self, technique: str, option: str) -> Mapping[str, tuple[Any, ...]]:
        return {}


def cells(seed: int = 0) -> LegalCells:
    return LegalCells(SPACE, Rules().judge, random.Random(seed))


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0, max_value=10_000))
def test_a_mended_cell_is_legal_and_keeps_what_it_can(seed: int) -> None:
    legal = cells(seed)
    wanted = SPACE.random_cell(random.Random(seed))
    found = legal.mended(wanted)

    assert found is not None
    assert not legal.verdict(found).violations
    kept = sum(a == b for a, b in zip(found, wanted, strict=True))
    assert kept >= len(NAMES) // 6


def test_a_legal_cell_needs_no_mending() -> None:
    wanted = SPACE.cell({"technique/t0": "b", "technique/t1": "a", "technique/t5": "c"})

    assert cells().mended(wanted) == wanted


def test_what_was_visited_is_not_found_again() -> None:
    legal = cells()
    wanted = SPACE.cell({"technique/t0": "b"})
    visited: set[Any] = set()
    for _ in range(50):
        found = legal.near(wanted, visited)
        assert found is not None
        assert found not in visited
        visited.add(found)


def test_where_the_first_labels_are_illegal_a_legal_cell_is_found_near_them() -> None:
    first = OverridesParser.create().parse_override("technique/t1=a,baseline")
    zero = OverridesParser.create().parse_override("technique/t0=baseline,b")
    others = [
        parameter for parameter in SPACE.parameters if parameter.name not in ("technique/t0", "technique/t1")
    ]
    space = Space(
        entries=(searched(zero, 0), searched(first, 0), *others),
        techniques=frozenset(NAMES),
    )
    legal = LegalCells(space, Rules().judge, random.Random(0))
    found = legal.mended(space.cell({}))

    assert found is not None
    assert not legal.verdict(found).violations


def test_a_large_space_is_not_listed() -> None:
    assert SPACE.n_cells() == 4**12
    assert cells().listed() is None
