from __future__ import annotations

from typing import Any

from memsweep.diff.entry import Entry, entry_of_composed, entry_of_config

NODES = {
    "adapter/lora": {"package": "adapter", "node": {"r": 16, "deep": {"a": 1}}},
    "preset/one": {"package": "_global_", "node": {"seed": 1}},
}


def composed(config: dict[str, Any], **facts: Any) -> Entry:
    raw = {"config": config, "choices": {}, "typed": None, "space": {"error": "none"}, **facts}
    return entry_of_composed(raw, NODES, {})


def test_what_does_not_compose_is_nothing_but_its_error() -> None:
    assert entry_of_composed({"error": "no such option"}, {}, {}) == Entry(error="no such option")


def test_a_group_owns_the_leaves_that_its_option_sets_and_no_other_below_its_name() -> None:
    found = composed({"adapter": {"r": 8}, "seed": 0}, choices={"adapter": "lora", "preset": "one"})

    assert found.owns("adapter", "adapter.r")
    assert found.owns("adapter", "adapter.deep.a")
    assert not found.owns("adapter", "adapter.alpha")
    assert found.owns("preset", "seed")


def test_a_group_of_which_nothing_is_known_owns_what_is_below_its_name() -> None:
    found = composed({}, choices={"hydra/sweeper/sampler@hydra.sweeper.sampler": "tpe", "model": "tiny"})

    assert found.owns("model", "model.name")
    assert not found.owns("model", "models")
    assert found.owns("hydra/sweeper/sampler@hydra.sweeper.sampler", "hydra.sweeper.sampler.name")


def test_typed_leaves_have_the_types_that_are_meant_and_the_defaults_of_what_is_left_out() -> None:
    found = composed({"measure": {"max_seconds": 60}}, typed={"measure": {"max_seconds": 60.0, "repeats": 1}})

    assert found.leaves == {"measure.max_seconds": 60}
    assert found.typed == {"measure.max_seconds": 60.0, "measure.repeats": 1}


def test_what_is_looked_up_is_not_shown_in_its_types_either() -> None:
    found = composed({"model": {"path": "${oc.env:HERE}"}}, typed={"model": {"path": "/home/me"}})

    assert found.typed == {"model.path": "${oc.env:HERE}"}


def test_values_that_are_looked_up_are_compared_and_their_texts_kept() -> None:
    found = composed({"a": "${b}", "b": 1}, resolved={"a": 1, "b": 1})

    assert (found.leaves, found.texts) == ({"a": 1, "b": 1}, {"a": "${b}"})


def test_of_hydras_own_config_only_what_decides_of_a_study_counts() -> None:
    found = entry_of_config(
        {"seed": 0, "hydra": {"sweeper": {"n_trials": 4}, "help": {"template": "x"}}}, None
    )

    assert found.leaves == {"seed": 0, "hydra.sweeper.n_trials": 4}


def test_choices_that_nobody_recorded_are_read_from_the_techniques() -> None:
    found = entry_of_config({"technique": {"adapter": {"option": "lora", "r": 8}}}, None)

    assert found.choices == {"technique/adapter": "lora"}
