from __future__ import annotations

import json
from typing import Any

from diff_cases import entry, space

from memsweep.diff.difference import Item, Section
from memsweep.diff.leaves import Change
from memsweep.diff.review import Block, Review, changed_options, grouped
from memsweep.diff.snapshot import Snapshot

SEED = Item(section=Section.CONFIG, change=Change(path="seed", old="0", new="1"))
BATCH = Item(section=Section.CONFIG, change=Change(path="batch", old="4", new="8"))
MORE = Item(section=Section.SEARCH, text="more")


def snapshot(options: dict[str, Any], facts: dict[str, Any], **entries: Any) -> Snapshot:
    nodes = {label: {"package": "", "node": node} for label, node in options.items()}
    return Snapshot(entries=entries, options=nodes, facts=facts)


def test_identical_differences_are_told_once_with_all_presets_that_have_them() -> None:
    blocks = grouped({"a": [SEED, MORE], "b": [BATCH, SEED], "c": [SEED]})

    assert blocks == (
        Block(names=("a", "b", "c"), items=(SEED,)),
        Block(names=("a",), items=(MORE,)),
        Block(names=("b",), items=(BATCH,)),
    )


def test_within_a_block_what_is_set_comes_before_what_is_searched() -> None:
    (block,) = grouped({"a": [MORE, SEED]})

    assert block.items == (SEED, MORE)


def test_an_option_that_no_preset_chooses_is_told_by_its_file() -> None:
    old = snapshot(
        {"model/tiny": {"n": 1}, "model/small": {"n": 1}}, {}, default=entry(choices={"model": "small"})
    )
    new = snapshot(
        {"model/tiny": {"n": 2}, "model/small": {"n": 2}}, {}, default=entry(choices={"model": "small"})
    )

    (option,) = changed_options(old, new, only_used=False)

    assert (option.label, option.kind.value) == ("model/tiny", "changed")
    assert option.changes == (Change(path="n", old="1", new="2"),)


def test_a_techniques_option_says_who_searches_it_and_which_rules_come_and_go() -> None:
    searching = entry(space=space(("technique/adapter", ["baseline", "lora"])))
    label = "technique/adapter/lora"
    rank = {"parameters": {"r": {"default": 16}}}
    old = snapshot(
        {"x/y": {}}, {label: {**rank, "rules": {"requires a": True}}}, default=searching, other=entry()
    )
    new = snapshot(
        {"x/y": {}}, {label: {**rank, "rules": {"excludes b": True}}}, default=searching, other=entry()
    )

    (option,) = changed_options(old, new, only_used=True)

    assert option.used_by == ("default",)
    assert [
        (change.path, change.kind.value, change.text(change.old or change.new)) for change in option.changes
    ] == [
        ("rule", "removed", "requires a"),
        ("rule", "added", "excludes b"),
    ]


def test_of_presets_that_cannot_tell_what_they_search_it_is_not_known_whether_they_search_an_option() -> None:
    label, silent = "technique/adapter/lora", entry(unsearched="too old")
    old, new = (
        snapshot(
            {"x/y": {}}, {label: {"parameters": {"r": {"default": rank}}}}, default=silent, other=entry()
        )
        for rank in (16, 32)
    )

    (option,) = changed_options(old, new, only_used=False)

    assert (option.used_by, option.unknown) == ((), ("default",))


def test_an_option_of_any_group_may_be_searched_and_is_told_by_its_file_then() -> None:
    searching = entry(choices={"model": "small"}, space=space(("model", ["small", "tiny"])))
    old, new = (snapshot({"model/tiny": {"n": n}}, {}, default=searching) for n in (1, 2))

    (option,) = changed_options(old, new, only_used=False)

    assert (option.label, option.used_by) == ("model/tiny", ("default",))


def test_a_new_and_a_gone_option_are_told_as_such() -> None:
    old, new = snapshot({"model/a": {"n": 1}}, {}), snapshot({"model/b": {"n": 1, "path": None}}, {})

    found = [(one.label, one.kind.value, one.changes) for one in changed_options(old, new, only_used=False)]

    assert found == [
        ("model/a", "removed", ()),
        ("model/b", "added", (Change(path="n", old=None, new="1"),)),
    ]


def test_only_notes_are_no_difference() -> None:
    review = Review(names=("a", "b"), presets=("default",), notes=((("default",), "not compared"),))

    assert not review.is_different
    assert json.loads(json.dumps(review.to_mapping()))["different"] is False


def test_json_holds_values_with_their_types() -> None:
    item = Item(section=Section.CONFIG, change=Change(path="a", old="1", new='"1"'))
    review = Review(
        names=("a", "b"), presets=("default",), blocks=(Block(names=("default",), items=(item,)),)
    )

    assert review.to_mapping()["differences"] == [
        {
            "presets": ["default"],
            "items": [{"section": "config", "path": "a", "kind": "retyped", "old": 1, "new": "1"}],
        }
    ]
