"""Every value reaches a trial as it was written, whatever it is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from hydra_plugins.pareto_sweeper._overrides import fixed, searched
from hydra_plugins.pareto_sweeper._typed import collect
from memsweep.errors import ConfigError
from memsweep.search.grammar import label_text, read_value
from memsweep.search.parameter import Parameter

TEXT = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=5)


def parameter(text: str) -> Parameter:
    return searched(OverridesParser.create().parse_override(text), seed=0)


@given(VALUES)
def test_every_value_is_read_back_from_its_label(value: Any) -> None:
    read = read_value(label_text(value))

    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    "text, values",
    [
        ("x=1,1.0,true,null,'1'", [1, 1.0, True, None, "1"]),
        ("x='a,b','it\\'s',\"q\"", ["a,b", "it's", "q"]),
        ("x='k=v','(a)','[b]'", ["k=v", "(a)", "[b]"]),
        ("x=[1,2],[a,'b c']", [[1, 2], ["a", "b c"]]),
        ("x={a:1},{a:{b:null}}", [{"a": 1}, {"a": {"b": None}}]),
        ("x=a b,c", ["a b", "c"]),
        ("x=choice(a,b)", ["a", "b"]),
        ("x=str(choice(1,2))", ["1", "2"]),
        ("x=int(choice(1.0,2.0))", [1, 2]),
        ("x=sort(3,1,2)", [1, 2, 3]),
        ("x=tag(t,choice(a,b))", ["a", "b"]),
        ("x=range(1,4)", [1, 2, 3]),
        ("x=range(4,1,-1)", [4, 3, 2]),
        ("x=range(0,1,0.25)", [0.0, 0.25, 0.5, 0.75]),
        ("x=${y},2", ["${y}", 2]),
    ],
)
def test_what_is_typed_is_what_trials_get(text: str, values: list[Any]) -> None:
    found = [read_value(label) for label in parameter(text).labels]

    assert [(type(value), value) for value in found] == [(type(value), value) for value in values]


def test_the_sampler_tells_one_from_one_point_zero_and_true() -> None:
    distribution = parameter("x=1,1.0,true").distribution

    assert isinstance(distribution, CategoricalDistribution)
    assert [distribution.to_internal_repr(choice) for choice in distribution.choices] == [0, 1, 2]


def test_a_range_does_not_hold_its_end_for_any_sampler() -> None:
    distribution = parameter("x=range(1,9,2)").distribution

    assert distribution == IntDistribution(1, 7, step=2)


def test_an_interval_does_not_hold_its_end() -> None:
    distribution = parameter("x=interval(0,1)").distribution

    assert isinstance(distribution, FloatDistribution)
    assert distribution.low == 0.0
    assert distribution.high == math.nextafter(1.0, 0.0)


def test_an_interval_of_integers_is_drawn_in_integers() -> None:
    assert parameter("x=int(interval(1,9))").distribution == IntDistribution(1, 8)


def test_the_tag_log_makes_an_interval_logarithmic() -> None:
    distribution = parameter("x=tag(log,interval(1e-5,1e-1))").distribution

    assert isinstance(distribution, FloatDistribution)
    assert distribution.log


@given(st.floats(min_value=0.0, max_value=1.0, exclude_max=True))
def test_a_point_of_an_interval_keeps_every_digit(drawn: float) -> None:
    assert read_value(parameter("x=interval(0,1)").label(drawn)) == drawn


@given(st.integers(min_value=0, max_value=9))
def test_a_step_of_a_range_of_fractions_is_the_value_that_hydra_names(index: int) -> None:
    of_range = parameter("x=range(0,1,0.1)")

    assert of_range.label(of_range.distribution.low + index * 0.1) == of_range.labels[index]


def test_shuffle_gives_every_trial_the_same_order() -> None:
    text = "x=shuffle(range(0,20))"

    assert parameter(text).labels == parameter(text).labels
    assert parameter(text).labels != parameter("x=range(0,20)").labels


def test_a_shuffled_list_is_shuffled_once() -> None:
    entry = fixed(OverridesParser.create().parse_override("x=shuffle([1,2,3,4,5,6,7,8])"))

    assert read_value(entry.text.removeprefix("x=")) == entry.value


@pytest.mark.parametrize("text", ["x=a,a", "x=1e-3,0.001", "x=a,'a'", "x=null,null"])
def test_a_value_named_twice_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="names one value twice"):
        parameter(text)


@pytest.mark.parametrize("text", ["x=range(3,3)", "x=interval(2,1)", "x=tag(log,interval(0,1))"])
def test_a_sweep_without_values_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"names no value|needs finite start < end"):
        parameter(text)


def test_a_range_too_long_to_list_is_refused_with_what_to_type() -> None:
    with pytest.raises(ConfigError, match=r"int\(interval"):
        parameter("x=range(0,10000000)")


@pytest.mark.parametrize("text", ["x=a", "++x.y=[1,2]", "~x", "+x={a:1}", "x='a,b'", "a@b=c"])
def test_a_fixed_override_is_passed_on_as_typed(text: str) -> None:
    assert fixed(OverridesParser.create().parse_override(text)).text == text


def test_the_command_line_wins_over_params_and_keeps_their_place() -> None:
    overrides = collect({"x": "1,2", "y": "3"}, ["z=4", "x=5"], None)

    assert [override.input_line for override in overrides] == ["x=5", "y=3", "z=4"]


def test_params_may_be_numbers_booleans_and_null() -> None:
    overrides = collect({"a": 1, "b": 2.5, "c": True, "d": None}, [], None)

    assert [override.value() for override in overrides] == [1, 2.5, True, None]


def test_nested_params_are_dotted_keys() -> None:
    overrides = collect({"technique": {"adapter": {"r": "8,16"}}}, [], None)

    assert [override.input_line for override in overrides] == ["technique.adapter.r=8,16"]


def test_a_list_in_params_is_refused_because_it_may_mean_two_things() -> None:
    with pytest.raises(ConfigError, match=r"choice\(a,b\)"):
        collect({"x": [1, 2]}, [], None)


def test_params_cannot_configure_the_sweep_itself() -> None:
    with pytest.raises(ConfigError, match="hydra configures"):
        collect({"hydra.verbose": "true,false"}, [], None)
