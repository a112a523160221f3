from __future__ import annotations

from typing import Any

from diff_cases import entry, space

from memsweep.diff.cells import search_lines
from memsweep.diff.entry import Entry

ADAPTER, PACKING, RANK = "technique/adapter", "technique/packing", "technique.adapter.r"
BASELINES = {ADAPTER: "baseline", PACKING: "baseline"}


def side(found: dict[str, Any], **facts: Any) -> Entry:
    return entry(space=found, choices={**BASELINES, **facts.pop("choices", {})}, **facts)


def test_equal_spaces_have_nothing_to_tell() -> None:
    one = space((ADAPTER, ["baseline", "lora"]), (PACKING, ["baseline", "bfd"]))
    other = space((PACKING, ["bfd", "baseline"]), (ADAPTER, ["lora", "baseline"]))

    assert search_lines(side(one), side(other)) == ()


def test_a_new_value_makes_cells_appear() -> None:
    old, new = space((ADAPTER, ["baseline", "lora"])), space((ADAPTER, ["baseline", "lora", "dora"]))

    assert search_lines(side(old), side(new)) == (
        "2 combinations, 2 of them legal -> 3 combinations, 3 of them legal",
        "technique/adapter is searched with dora",
        "1 appears, adapter=dora is new (as adapter=dora)",
    )


def test_a_rule_makes_cells_vanish_and_is_the_reason() -> None:
    parameters = ((ADAPTER, ["baseline", "lora"]), (PACKING, ["baseline", "bfd"]))
    rule = "packing=bfd needs adapter=lora, got adapter=baseline: a test (a source)"
    old = space(*parameters)
    new = space(
        *parameters, refuse=lambda adapter, packing: rule if (adapter, packing) == ("baseline", "bfd") else ""
    )

    assert search_lines(side(old), side(new)) == (
        "4 combinations, 4 of them legal -> 4 combinations, 3 of them legal",
        "1 vanishes, refused now: packing=bfd needs adapter=lora: a test (a source) (as packing=bfd)",
    )
    assert search_lines(side(new), side(old))[1] == (
        "1 appears, not refused any more: packing=bfd needs adapter=lora: a test (a source) (as packing=bfd)"
    )


def test_a_key_that_is_searched_now_keeps_the_cells_with_its_composed_value() -> None:
    old = space((ADAPTER, ["baseline", "lora"]))
    new = space((ADAPTER, ["baseline", "lora"]), (PACKING, ["baseline", "bfd"]))

    assert search_lines(side(old), side(new))[1:] == (
        "technique/packing is searched: baseline, bfd",
        "2 appear, packing=bfd is new (as packing=bfd)",
    )
    assert search_lines(side(new), side(old))[1:] == (
        "technique/packing is not searched any more: baseline, bfd",
        "2 vanish, packing=bfd is not searched any more (as packing=bfd)",
    )


def test_a_parameter_that_is_searched_now_keeps_the_cells_with_its_options_default() -> None:
    old = {**space((ADAPTER, ["lora"])), "defaults": {"technique/adapter/lora/r": 16}}
    new = {**space((ADAPTER, ["lora"]), (RANK, [8, 16])), "defaults": old["defaults"]}

    lines = search_lines(side(old), side(new))

    assert lines[-1] == "1 appears, adapter.r=8 is new (as adapter=lora adapter.r=8)"


def test_values_of_other_types_are_other_cells() -> None:
    assert search_lines(side(space(("x", [1]))), side(space(("x", ["1"]))))[1:] == (
        '1 appears, x="1" is new (as x="1")',
        "1 vanishes, x=1 is not searched any more (as x=1)",
    )


def test_of_spaces_too_large_to_list_the_rules_are_compared() -> None:
    large = {**space((ADAPTER, ["baseline", "lora"])), "cells": None, "n_cells": 10**6, "n_legal": None}
    old = {**large, "sentences": ["a is refused, got b: why", "b is refused"]}
    new = {**large, "sentences": ["b is refused", "c is refused"]}

    assert search_lines(side(old), side(new)) == (
        "refused now: c is refused",
        "not refused any more: a is refused: why",
    )


def test_an_interval_tells_its_ends() -> None:
    def interval(high: float) -> dict[str, Any]:
        parameter = {"key": "lr", "only_with": [], "low": 0.1, "high": high, "log": True}
        return {"parameters": [parameter], "n_cells": None, "n_legal": None, "cells": None, "sentences": []}

    assert search_lines(side(interval(1.0)), side(interval(2.0))) == (
        "lr is searched with 0.1 to 2.0 (log), without 0.1 to 1.0 (log)",
    )
