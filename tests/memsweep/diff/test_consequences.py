from __future__ import annotations

from typing import Any

from diff_cases import entry, space

from memsweep.diff.consequences import consequences
from memsweep.diff.entry import Entry

ADAPTER, PACKING, RANK = "technique/adapter", "technique/packing", "technique.adapter.r"
BASELINES = {ADAPTER: "baseline", PACKING: "baseline"}
PARAMETERS = ((ADAPTER, ["baseline", "lora", "dora"]), (PACKING, ["baseline", "bfd"]))


def side(rank: int, *parameters: tuple[str, list[Any]], **facts: Any) -> Entry:
    """Return a side on which one option has such a default, and sets what is given."""
    found = space(*(parameters or PARAMETERS), refuse=facts.pop("refuse", lambda **_: ""))
    fact = {
        "parameters": {"r": {"default": rank}},
        "settings": {"adapter": {"r": "${r}", **facts.pop("sets", {})}},
        "settings_by_trainer": facts.pop("by_trainer", {}),
    }
    found |= {"facts": {f"{ADAPTER}/lora": fact}, "defaults": {f"{ADAPTER}/lora/r": rank}}
    return entry(
        {"trainer.name": "sft", **facts.pop("leaves", {})},
        space=found,
        choices={**BASELINES, **facts.pop("choices", {})},
        **facts,
    )


def test_another_default_is_told_with_how_many_trials_get_it() -> None:
    (said,) = consequences(side(16), side(32))

    assert said == "trials with adapter=lora get r 32 instead of 16 (2 of its 6 combinations)"


def test_what_is_refused_is_not_among_them() -> None:
    def refuse(adapter: str, packing: str) -> str:
        return "no" if (adapter, packing) == ("lora", "bfd") else ""

    (said,) = consequences(side(16), side(32, refuse=refuse))

    assert said.endswith("(1 of its 5 legal combinations)")


def test_what_an_option_sets_otherwise_is_told_for_the_trainer_of_the_preset() -> None:
    old = side(16, sets={"bias": "none"}, by_trainer={"dpo": {"adapter": {"x": 1}}})
    new = side(16, sets={"bias": "all"}, by_trainer={"dpo": {"adapter": {"x": 2}}})

    assert list(consequences(old, new)) == [
        "trials with adapter=lora get adapter bias all instead of none (2 of its 6 combinations)"
    ]


def test_a_setting_that_comes_or_goes_is_told_as_such() -> None:
    without, having = side(16), side(16, sets={"bias": "all"})

    assert [next(consequences(a, b)) for a, b in ((without, having), (having, without))] == [
        "trials with adapter=lora get adapter bias all, which they did not get (2 of its 6 combinations)",
        "trials with adapter=lora get no adapter bias any more, which was all (2 of its 6 combinations)",
    ]


def test_a_parameter_that_is_searched_has_no_default() -> None:
    searched = ((ADAPTER, ["baseline", "lora"]), (RANK, [4, 8]))

    assert list(consequences(side(16, *searched), side(32, *searched))) == []


def test_a_parameter_that_the_preset_sets_itself_has_no_default() -> None:
    sides = [side(rank, leaves={RANK: 8}, owned={ADAPTER: frozenset()}) for rank in (16, 32)]

    assert list(consequences(*sides)) == []


def test_an_option_that_is_composed_or_searched_on_one_side_only_is_told_elsewhere() -> None:
    composed = [side(rank, choices={ADAPTER: "lora"}) for rank in (16, 32)]
    before = side(16, (ADAPTER, ["baseline"]), (PACKING, ["baseline", "bfd"]))

    assert list(consequences(*composed)) == []
    assert list(consequences(before, side(32))) == []


def test_of_a_space_too_large_to_list_the_number_is_not_known() -> None:
    old, new = side(16), side(32)
    new = entry(
        new.leaves, choices=new.choices, space={**new.space, "cells": None, "n_cells": 5000, "n_legal": None}
    )

    (said,) = consequences(old, new)

    assert said == "trials with adapter=lora get r 32 instead of 16 (some of its 5,000 combinations)"


def test_ignored_paths_do_not_count() -> None:
    assert list(consequences(side(16), side(32), lambda path: path == RANK)) == []
