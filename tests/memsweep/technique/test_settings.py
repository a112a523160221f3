from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memsweep.errors import TwoOwners, UnknownOption
from memsweep.technique.catalogue import Catalogue, read_catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.settings import Settings, doubly_set, merge, requested_hash

PROSE = "summary: Sets a thing.\nsaves: nothing\ncosts: nothing\nsource: arXiv:0000.00000\nchanges: nothing\n"


def test_settings_of_all_options_come_together_by_seam(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"adapter": "lora", "length": "limit", "quantization": "nf4"})

    settings = merge(choice, "sft", catalogue)

    assert settings == Settings(
        model={"quantization": {"load_in_4bit": True}},
        trainer={"max_length": 512},
        adapter={"type": "lora", "r": 16, "name": "rank-16"},
        environment={"LENGTH": "512"},
    )


def test_a_trainer_gets_its_own_settings_too(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"adapter": "lora"})

    assert merge(choice, "dpo", catalogue).trainer == {"beta": 0.2}
    assert merge(choice, "sft", catalogue).trainer == {}


def test_two_options_that_set_one_key_are_refused_by_name(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"adapter": "lora", "quantization": "same"})

    with pytest.raises(TwoOwners, match=r"adapter=lora and quantization=same both set adapter\.type"):
        merge(choice, "sft", catalogue)


@pytest.mark.parametrize(
    ("one", "other", "key"),
    [
        ('{"new_name|old_name": true}', "{old_name: false}", "trainer.old_name"),
        ("{kwargs: {a: 1}}", "{kwargs: 2}", "trainer.kwargs"),
        ("{kwargs: {a: 1}}", "{kwargs: {a: 1}}", "trainer.kwargs.a"),
    ],
)
def test_one_key_is_found_under_other_names_and_within_mappings(
    conf: Path, write: Callable[[str, str], None], one: str, other: str, key: str
) -> None:
    write("adapter/one", f"{PROSE}settings: {{trainer: {one}}}\n")
    write("length/other", f"{PROSE}settings: {{trainer: {other}}}\n")
    catalogue = read_catalogue(conf)

    with pytest.raises(TwoOwners, match=f"adapter=one and length=other both set {key}"):
        merge(catalogue.choose({"adapter": "one", "length": "other"}), "sft", catalogue)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"max_length": 64}, ["max_length"]),
        ({"old": 1, "beta": 0.1}, ["old"]),
        ({"new": None}, ["new"]),
        ({"kwargs.a": 1}, ["kwargs"]),
        ({"kwargs": {"b": 1}, "max_length": 1}, ["kwargs", "max_length"]),
        ({"optim": "sgd"}, []),
        ({}, []),
    ],
)
def test_what_the_study_and_an_option_both_set_is_found(
    conf: Path, write: Callable[[str, str], None], arguments: dict[str, object], names: list[str]
) -> None:
    trainer = '{max_length: 1, "new|old": true, kwargs: {a: 1}}'
    write("length/one", f"{PROSE}same_as: baseline\nsettings: {{trainer: {trainer}}}\n")
    catalogue = read_catalogue(conf)

    found = doubly_set(catalogue.choose({"length": "one"}), "sft", arguments, catalogue)

    assert sorted(found) == [
        f"length=one and trainer.arguments.{name} both set it: drop one of them" for name in names
    ]


def test_what_an_option_sets_for_one_trainer_is_set_twice_there_only(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"adapter": "lora"})

    assert doubly_set(choice, "sft", {"beta": 0.1}, catalogue) == ()
    assert doubly_set(choice, "dpo", {"beta": 0.1}, catalogue) == (
        "adapter=lora and trainer.arguments.beta both set it: drop one of them",
    )


def test_two_options_may_fill_one_mapping(conf: Path, write: Callable[[str, str], None]) -> None:
    write("adapter/one", PROSE + "settings: {trainer: {kwargs: {a: 1}}}\n")
    write("length/other", PROSE + "settings: {trainer: {kwargs: {b: 2}}}\n")
    catalogue = read_catalogue(conf)

    settings = merge(catalogue.choose({"adapter": "one", "length": "other"}), "sft", catalogue)

    assert settings.trainer == {"kwargs": {"a": 1, "b": 2}}


def test_a_declared_equality_sets_what_the_other_sets(catalogue: Catalogue) -> None:
    def length(trainer: str, tokens: int) -> object:
        choice = catalogue.choose({"length": "limit"}, {"technique.length.tokens": tokens})
        return merge(choice, trainer, catalogue).trainer

    assert length("sft", 1024) == {}
    assert length("sft", 512) == {"max_length": 512}
    assert length("dpo", 1024) == {"max_length": 1024}


def test_a_declared_equality_may_depend_on_other_choices(
    conf: Path, write: Callable[[str, str], None]
) -> None:
    equal = "same_as: {option: baseline, when: {length: [limit]}}\nsettings: {model: {a: 1}}\n"
    write("adapter/implied", PROSE + equal)
    catalogue = read_catalogue(conf)

    assert merge(catalogue.choose({"adapter": "implied"}), "sft", catalogue).model == {"a": 1}
    assert merge(catalogue.choose({"adapter": "implied", "length": "limit"}), "sft", catalogue).model == {}


def test_merging_an_unknown_option_lists_the_options(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownOption, match="it has baseline, lora, prompt"):
        merge({"adapter": ChosenOption(option="dora")}, "sft", catalogue)


def test_the_hash_knows_settings_and_the_rest_but_not_their_order() -> None:
    one = Settings(trainer={"a": 1, "b": [1, 2]})

    assert requested_hash(one, {"x": 1, "y": 2}) == requested_hash(
        Settings(trainer={"b": [1, 2], "a": 1}), {"y": 2, "x": 1}
    )
    assert requested_hash(one, {"x": 1}) != requested_hash(one, {"x": 2})
    assert requested_hash(one, {}) != requested_hash(replace(one, model={"c": 1}), {})
    assert requested_hash(one, {}) != requested_hash(Settings(trainer={"a": True, "b": [1, 2]}), {})


def test_the_hash_is_sixteen_hexadecimal_digits_that_never_change() -> None:
    assert requested_hash(Settings(trainer={"packing": True}), ["model=tiny"]) == "870078bf4769ac9b"
