from __future__ import annotations

from typing import Any

from diff_cases import entry, space

from memsweep.diff.difference import Item, Section, difference
from memsweep.diff.entry import Entry


def found(old: Entry, new: Entry, **facts: Any) -> list[tuple[str, str]]:
    """Return section and path or text of each difference."""
    items, _ = difference(old, new, **facts)
    return [(item.section.value, item.change.path if item.change else item.text) for item in items]


def test_equal_sides_differ_in_nothing() -> None:
    one = entry({"a": 1}, choices={"model": "tiny"}, training={"trainer": {"x": 1}}, space=space(("x", [1])))

    assert difference(one, one) == ((), ())


def test_a_switched_option_is_one_item_with_what_follows_beneath() -> None:
    old = entry(
        {"technique.adapter.option": "baseline", "seed": 0}, choices={"technique/adapter": "baseline"}
    )
    new = entry(
        {"technique.adapter.option": "lora", "technique.adapter.r": 16, "seed": 1},
        choices={"technique/adapter": "lora"},
    )

    switch, seed = difference(old, new)[0]

    assert (switch.section, switch.change.path) == (Section.SWITCH, "technique/adapter")  # type: ignore
    assert (switch.change.old, switch.change.new) == ('"baseline"', '"lora"')  # type: ignore
    assert [change.path for change in switch.beneath] == ["technique.adapter.r"]
    assert seed.change.path == "seed"  # type: ignore


def test_an_option_that_sets_only_some_leaves_of_its_node_takes_only_those_beneath() -> None:
    owned = {"space": frozenset({"hydra.sweeper.when"})}
    old = entry({"hydra.sweeper.when": 1, "hydra.sweeper.n_trials": 1}, choices={"space": "a"}, owned=owned)
    new = entry({"hydra.sweeper.when": 2, "hydra.sweeper.n_trials": 2}, choices={"space": "b"}, owned=owned)

    assert found(old, new) == [("switch", "space"), ("config", "hydra.sweeper.n_trials")]


def test_what_a_trial_is_given_is_told_by_its_seam() -> None:
    old = entry(training={"trainer": {"beta": 0.1}, "environment": {}})
    new = entry(training={"trainer": {"beta": 0.2}, "environment": {"A": "1"}})

    items, _ = difference(old, new)

    assert [(item.section, item.where, item.change.path) for item in items if item.change] == [
        (Section.TRAINING, "trainer", "beta"),
        (Section.TRAINING, "environment", "A"),
    ]


def test_how_the_space_is_written_does_not_count_where_what_is_searched_is_known() -> None:
    one = space(("x", [1, 2]))
    old = entry({"hydra.sweeper.params.x": "1,2", "hydra.sweeper.n_trials": 4}, space=one)
    new = entry({"hydra.sweeper.params.x": "choice(1,2)", "hydra.sweeper.n_trials": 5}, space=one)

    assert found(old, new) == [("config", "hydra.sweeper.n_trials")]


def test_how_the_space_is_written_counts_where_nobody_knows_what_is_searched() -> None:
    old = entry({"hydra.sweeper.params.x": "1,2"}, unsearched="too old")
    new = entry({"hydra.sweeper.params.x": "1,2,3"}, unsearched="too old")

    assert found(old, new) == [("config", "hydra.sweeper.params.x")]
    assert difference(old, new, ("main", "here"))[1] == (
        "what it searches could not be had at main and at here: too old",
    )


def test_each_side_that_cannot_tell_what_it_searches_is_named_with_its_reason() -> None:
    old, new = entry(unsearched="too old"), entry(unsearched="its code raised TypeError: x")
    names = ("main", "here")

    (one,), _ = difference(entry(space=space(("x", [1]))), new, names)

    assert one.text == "what is searched at here could not be had: its code raised TypeError: x"
    assert difference(old, new, names)[1] == (
        "what it searches could not be had at main: too old",
        "what it searches could not be had at here: its code raised TypeError: x",
    )


def test_a_side_that_does_not_compose_is_told_and_nothing_else_of_it() -> None:
    items, notes = difference(entry(error="no option x"), entry({"a": 1}), ("main", "here"))

    assert items == (Item(section=Section.COMPOSES, text="does not compose at main: no option x"),)
    assert notes == ()


def test_what_composes_on_neither_side_for_one_reason_is_no_difference() -> None:
    assert difference(entry(error="no x"), entry(error="no x")) == ((), ("composes on neither side: no x",))


def test_what_composes_on_neither_side_for_two_reasons_is_no_difference_either() -> None:
    items, notes = difference(entry(error="no x"), entry(error="no y"), ("main", "here"))

    assert items == ()
    assert notes == ("does not compose at main: no x", "does not compose at here: no y")


def test_hydras_settings_do_not_count_against_a_trial_which_has_none() -> None:
    assert found(entry({"seed": 0}), entry({"seed": 0, "hydra.sweeper.n_trials": 4})) == []


def test_types_are_compared_only_where_both_sides_have_them() -> None:
    old = entry({"a": 60}, typed={"a": 60.0, "b": 1})

    assert found(old, entry({"a": 60.0}, typed={"a": 60.0, "b": 1})) == []
    assert found(old, entry({"a": 60})) == []


def test_what_is_looked_up_is_shown_as_it_is_written() -> None:
    ((item,), _) = difference(entry({"a": "/old"}), entry({"a": "/new"}, texts={"a": "${oc.env:HERE}"}))

    assert item.change is not None
    assert item.change.new == '"${oc.env:HERE}"'


def test_what_is_looked_up_is_not_shown_by_what_it_becomes() -> None:
    old = entry(training={"environment": {"A": "x"}})
    new = entry(
        {"launch.environment.A": "from outside"},
        texts={"launch.environment.A": "${oc.env:A}"},
        training={"environment": {"A": "from outside"}},
    )

    items, _ = difference(old, new)

    assert "from outside" not in str(items)


def test_what_was_in_force_is_compared_where_both_sides_know_it() -> None:
    old, new = entry(in_force={"model.dtype": "float32"}), entry(in_force={"model.dtype": "bfloat16"})

    assert found(old, new) == [("in force", "model.dtype")]
    assert found(old, entry()) == []


def test_nothing_where_none_was_is_no_fact_of_a_trial() -> None:
    old = entry(in_force={"adapter": None, "effective_hash": "a"})
    new = entry(
        in_force={"adapter.r": 8, "adapter.bias": None, "adapter.rank_pattern": {}, "effective_hash": "b"}
    )

    assert found(old, new) == [("in force", "adapter.r")]


def test_secrets_in_messages_are_not_shown() -> None:
    items, _ = difference(entry(error="bad hf_abcdefghijklmnopqrstuvwxyz"), entry())

    assert "hf_abc" not in items[0].text
