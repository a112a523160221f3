from __future__ import annotations

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from memsweep.config.groups import require_groups, technique_nodes
from memsweep.errors import ConfigError


def refused(*texts: str) -> str:
    with pytest.raises(ConfigError) as error:
        require_groups(OverridesParser.create().parse_overrides(list(texts)), {"adapter", "packing"})
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "to_type"),
    [
        ("technique.adapter=lora", "technique/adapter=lora"),
        ("+technique.adapter=lora", "technique/adapter=lora"),
        ("technique.adapter.option=lora", "technique/adapter=lora"),
        ("++technique.adapter.option=lora", "technique/adapter=lora"),
        ("technique.adapter={option:lora}", "technique/adapter=lora"),
        ("technique.adapter=lora,ia3", "technique/adapter=lora,ia3"),
        ("technique.adapter.option=choice(lora,ia3)", "technique/adapter=choice(lora,ia3)"),
        ("technique.adapter=null", "technique/adapter=baseline"),
        ("~technique.adapter", "technique/adapter=baseline"),
    ],
)
def test_a_dot_for_the_slash_is_refused_with_what_to_type(text: str, to_type: str) -> None:
    assert refused(text) == f"technique.adapter is a group: type {to_type}"


@pytest.mark.parametrize("text", ["technique=lora", "technique=lora,ia3", "~technique"])
def test_the_folder_of_the_groups_is_no_group(text: str) -> None:
    assert refused(text) == "technique holds the groups, and is none: type technique/<technique>=<option>"
    with pytest.raises(ConfigError, match="type technique/<technique>=<option>"):
        technique_nodes("lora")


def test_all_such_overrides_are_said_at_once() -> None:
    assert refused("technique.adapter=lora", "seed=1", "technique.packing=bfd").splitlines() == [
        "technique.adapter is a group: type technique/adapter=lora",
        "technique.packing is a group: type technique/packing=bfd",
    ]


@pytest.mark.parametrize("text", ["technique/adapter=lora", "technique.adapter.r=4", "technique.loss=x"])
def test_groups_and_parameters_are_left_alone(text: str) -> None:
    require_groups(OverridesParser.create().parse_overrides([text]), {"adapter", "packing"})


def test_nodes_are_copies_that_a_caller_may_take_apart() -> None:
    composed = {"adapter": {"option": "lora", "r": 4}}
    technique_nodes(composed)["adapter"].pop("option")

    assert composed == {"adapter": {"option": "lora", "r": 4}}
    assert technique_nodes(None) == {}
