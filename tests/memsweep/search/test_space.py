"""Cells: which there are, and what each stands for."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_plugins.pareto_sweeper._overrides import fixed, searched
from memsweep.search.match import Match
from memsweep.search.parameter import Condition, Fixed, Parameter
from memsweep.search.space import Conditional, Space, technique_of


def parameter(text: str, **facts: object) -> Parameter:
    return replace(searched(OverridesParser.create().parse_override(text), seed=0), **facts)  # type: ignore[arg-type]


def typed(text: str) -> Fixed:
    return fixed(OverridesParser.create().parse_override(text))


ADAPTER = parameter("technique/adapter=baseline,lora,dora")
WITH_RANK = Condition(parent="technique/adapter", among=frozenset({"lora", "dora"}))
RANK = parameter("technique.adapter.r=8,16", conditions=(WITH_RANK,))
SPACE = Space(entries=(RANK, typed("seed=3"), ADAPTER), techniques=frozenset({"adapter"}))


def test_a_parameter_exists_only_with_an_option_that_has_it() -> None:
    cells = list(SPACE.cells())

    assert cells == [
        ("baseline", None),
        ("lora", "8"),
        ("lora", "16"),
        ("dora", "8"),
        ("dora", "16"),
    ]


def test_cells_are_counted_without_listing_them() -> None:
    assert SPACE.n_cells() == 5


def test_a_cell_is_given_to_a_trial_in_the_order_typed() -> None:
    assert SPACE.overrides(("lora", "16")) == ("technique.adapter.r=16", "seed=3", "technique/adapter=lora")


def test_a_parameter_that_does_not_exist_is_not_given_to_a_trial() -> None:
    assert SPACE.overrides(("baseline", None)) == ("seed=3", "technique/adapter=baseline")


def test_a_fixed_parameter_of_an_option_is_given_only_with_that_option() -> None:
    rank = Conditional(
        override=typed("technique.adapter.r=8"),
        conditions=(Condition(parent="technique/adapter", among=frozenset({"lora"})),),
    )
    space = Space(entries=(ADAPTER, rank), techniques=frozenset({"adapter"}))

    assert space.overrides(("lora",)) == ("technique/adapter=lora", "technique.adapter.r=8")
    assert space.overrides(("dora",)) == ("technique/adapter=dora",)


def test_a_request_tells_techniques_from_the_rest() -> None:
    request = SPACE.request(("lora", "16"))

    assert request.options == {"adapter": "lora"}
    assert request.parameters == {"technique.adapter.r": 16}
    assert request.groups == {"seed": 3}
    assert request.rest == ("seed=3",)


def test_a_package_is_part_of_the_key() -> None:
    space = Space(entries=(parameter("db@source=a,b"), parameter("db@target=a,b")))

    assert space.overrides(("a", "b")) == ("db@source=a", "db@target=b")


def test_an_added_key_keeps_its_plus_sign() -> None:
    space = Space(entries=(parameter("+x=1,2"), parameter("++y=3,4")))

    assert space.overrides(("1", "4")) == ("+x=1", "++y=4")


def test_an_interval_makes_a_space_that_cannot_be_counted() -> None:
    assert Space(entries=(parameter("x=interval(0,1)"),)).n_cells() == float("inf")


def test_a_space_without_parameters_has_one_cell() -> None:
    assert list(Space(entries=(typed("x=1"),)).cells()) == [()]


def test_what_is_not_a_technique_belongs_to_none() -> None:
    techniques = frozenset({"adapter"})

    assert technique_of("technique/adapter", techniques) == "adapter"
    assert technique_of("technique.adapter.r", techniques) == "adapter"
    assert technique_of("technique/other", techniques) is None
    assert technique_of("trainer.batch", techniques) is None


@given(st.lists(st.integers(min_value=1, max_value=4), min_size=1, max_size=4))
def test_cells_are_the_product_of_the_labels(sizes: list[int]) -> None:
    entries = tuple(parameter(f"x{i}=range(0,{size})") for i, size in enumerate(sizes))
    space = Space(entries=entries)
    expected = list(product(*([str(value) for value in range(size)] for size in sizes)))

    assert list(space.cells()) == expected
    assert space.n_cells() == len(expected)


@given(st.integers(min_value=0, max_value=1_000))
def test_a_random_cell_is_a_cell_of_the_space(seed: int) -> None:
    assert SPACE.random_cell(random.Random(seed)) in set(SPACE.cells())


def when(parent: str, *labels: str) -> Condition:
    return Condition(parent=parent, among=frozenset(labels))


def test_a_parameter_exists_only_where_all_its_conditions_hold() -> None:
    space = Space(
        entries=(
            parameter("c=0,1", conditions=(when("a", "1"), when("b", "1"))),
            parameter("a=0,1"),
            parameter("b=0,1"),
        )
    )

    assert [cell for cell in space.cells() if cell[2] is not None] == [("1", "1", "0"), ("1", "1", "1")]
    assert space.n_cells() == 5


def test_what_depends_on_a_parameter_that_does_not_exist_does_not_exist_either() -> None:
    chain = (
        parameter("c=5,6", conditions=(when("b", "3"),)),
        parameter("b=3,4", conditions=(when("a", "1"),)),
        parameter("a=1,2"),
    )
    space = Space(entries=chain)

    assert list(space.cells()) == [("1", "3", "5"), ("1", "3", "6"), ("1", "4", None), ("2", None, None)]
    assert [one.name for one in space.family(space.parameters[0])] == ["a", "b", "c"]


def test_a_condition_may_be_on_a_point_of_an_interval() -> None:
    large = Condition(parent="x", match=Match(at_least=0.5))
    space = Space(entries=(parameter("x=interval(0,1.0)"), parameter("y=1,2", conditions=(large,))))

    assert space.cell({"x": "0.7", "y": "2"}) == ("0.7", "2")
    assert space.cell({"x": "0.2", "y": "2"}) == ("0.2", None)


def test_many_families_are_counted_without_listing_their_cells() -> None:
    roots = [parameter(f"a{i}=0,1,2") for i in range(40)]
    children = [parameter(f"b{i}=0,1", conditions=(when(f"a{i}", "1", "2"),)) for i in range(40)]

    assert Space(entries=(*roots, *children)).n_cells() == 5**40


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Up to five parameters, each with conditions on some of those before it; typed in any order."""
    found: list[Parameter] = []
    for index in range(draw(st.integers(min_value=1, max_value=5))):
        labels = [str(label) for label in range(draw(st.integers(min_value=1, max_value=3)))]
        parents = draw(st.lists(st.sampled_from(found), max_size=2)) if found else []
        conditions = tuple(when(p.name, *draw(st.sets(st.sampled_from(p.labels)))) for p in parents)
        found.append(parameter(f"x{index}=choice({','.join(labels)})", conditions=conditions))
    return Space(entries=tuple(draw(st.permutations(found))))


def expected_cells(space: Space) -> set[tuple[str | None, ...]]:
    offered = [(None, *one.labels) for one in space.parameters]
    found = set()
    for cell in product(*offered):
        labels = dict(zip((one.name for one in space.parameters), cell, strict=True))
        if all(
            (labels[one.name] is not None) == all(labels[c.parent] in c.among for c in one.conditions)
            for one in space.parameters
        ):
            found.add(cell)
    return found


@settings(max_examples=60, deadline=None)
@given(spaces(), st.integers(min_value=0, max_value=1_000))
def test_exactly_the_cells_that_exist_are_listed_counted_and_drawn(space: Space, seed: int) -> None:
    listed = list(space.cells())

    assert set(listed) == expected_cells(space)
    assert len(listed) == len(set(listed)) == space.n_cells()
    assert space.random_cell(random.Random(seed)) in set(listed)
    assert all(space.cell(space.labels(cell)) == cell for cell in listed)
