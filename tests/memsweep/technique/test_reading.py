from __future__ import annotations

from typing import Any

import pytest

from memsweep.technique.option import Option
from memsweep.technique.reading import read_option

GOOD: dict[str, Any] = {
    "summary": "Does a thing.",
    "saves": ["weights", "gradients"],
    "costs": "time",
    "source": "arXiv:0000.00000",
    "changes": "numerics",
}


def read(**more: Any) -> tuple[Option | None, list[str]]:
    problems: list[str] = []
    option = read_option("adapter", "lora", {**GOOD, **more}, problems)
    return option, problems


def test_prose_is_all_that_a_file_must_have() -> None:
    option, problems = read()

    assert problems == []
    assert option is not None
    assert option.label == "adapter=lora"
    assert option.saves == ("weights", "gradients")
    assert option.changes == ("numerics",)
    assert option.rules == ()


def test_alternatives_share_the_other_conditions_of_their_rule() -> None:
    rule = {"any_of": [{"a": ["x"]}, {"b": ["y"]}], "device": "cuda", "because": "b", "source": "s"}

    option, problems = read(requires=[rule])

    assert problems == []
    assert option is not None
    (found,) = option.rules
    assert [sorted(part) for part in found.any_of] == [["a", "device"], ["b", "device"]]


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"summry": "x"}, "the file has no key summry; did you mean summary?"),
        ({"because": "x"}, "the file has no key because; it may have summary, costs, source"),
        (
            {"parameters": {"r": {"default": 1, "help": "more", "less": None}}},
            "within {...} a comma begins a new key: quote a text that holds one",
        ),
        (
            {"parameters": {"r": {"default": 1, "help": "x", "min": "1"}}},
            "parameters.r.min must be a number, got '1'",
        ),
        (
            {"needs": {"min_compute_capability": "9"}},
            "needs.min_compute_capability must be a number, got '9'",
        ),
        ({"summary": ""}, "summary must be a sentence, got ''"),
        ({"saves": "memory"}, "saves must be one or more of weights, gradients"),
        ({"saves": ["nothing", "weights"]}, "saves is nothing or something"),
        ({"changes": None}, "changes must be one or more of nothing, numerics"),
        ({"parameters": {"r": 16}}, "parameters.r must be a mapping with default, search and help"),
        (
            {"parameters": {"r": {"default": 16, "help": "rank", "serach": []}}},
            "parameters.r has no key serach",
        ),
        (
            {"parameters": {"r": {"default": None, "help": "rank"}}},
            "parameters.r.default must be a number or a word",
        ),
        ({"parameters": {"r": {"default": 16, "help": None}}}, "parameters.r.help must say what it does"),
        ({"parameters": {"option": {"default": 1, "help": "x"}}}, "is not a name that a parameter can have"),
        ({"parameters": {"r": {"default": 1, "search": ["a"], "help": "x"}}}, "a value must be int, got 'a'"),
        ({"parameters": {"r": {"default": 1, "max": 0, "help": "x"}}}, "a value must be at most 0, got 1"),
        ({"settings": {"peft": {}}}, "settings has no key peft; it may have model, trainer, adapter"),
        (
            {"settings": {"trainners": {"neftune_noise_alpha": 5}}},
            "settings has no key trainners; did you mean trainer?",
        ),
        (
            {"settings": {"trainers": {"neftune_noise_alpha": 5}}},
            "no trainer 'neftune_noise_alpha'; did you mean the seam trainer?",
        ),
        ({"settings": {"trainer": ["packing"]}}, "settings.trainer must be a mapping"),
        (
            {"settings": {"trainer": {"r": "${r}"}}},
            "uses ${r}, which is not a parameter of this option (none)",
        ),
        ({"settings": {"trainers": {"sft": {"modell": {}}}}}, "settings.trainers.sft has no key modell"),
        ({"needs": {"device": "gpu"}}, "needs.device must be any or cuda, got 'gpu'"),
        ({"needs": {"packages": ["a b"]}}, "'a b' is not a requirement that pip takes"),
        ({"needs": {"gpus": 2}}, "needs has no key gpus"),
        ({"needs": {"verified": "maybe"}}, "needs.verified must be cpu, simulated, hardware or source"),
        ({"trainers": ["sft"]}, "trainers must be a mapping with allowed, because and source"),
        (
            {"trainers": {"allowed": [], "because": "b", "source": "s"}},
            "trainers.allowed must list a trainer",
        ),
        ({"requires": {"a": "x"}}, "requires must be a list of rules"),
        ({"requires": [{"a": "x", "source": "s"}]}, "requires[0] must say its because, got None"),
        (
            {"requires": [{"a": "x", "source": "s", "becuase": "b"}]},
            "requires[0] must say its because, got None; did you mean because by becuase?",
        ),
        *(
            (
                {"requires": [{"truncation.max_length": {name: value}, "because": "b", "source": "s"}]},
                f"requires[0].truncation.max_length.{name} must be a number, got {value!r}",
            )
            for name in ("at_least", "at_most", "above")
            for value in ("sixty", True, None)
        ),
        ({"requires": [{"because": "b", "source": "s"}]}, "requires[0] has no condition"),
        ({"requires": [{"a": {"over": 1}, "because": "b", "source": "s"}]}, "requires[0].a has no key over"),
        (
            {"excludes": [{"a": "x", "because": "b", "source": "s", "versions": {"trl": "new"}}]},
            "excludes[0].versions.trl: 'new' is not a version specifier",
        ),
        ({"same_as": [3]}, "same_as must name an option, got 3"),
        (
            {"same_as": {"option": "baseline", "parameters": {"rank": 1}}},
            "same_as.parameters.rank is not a parameter of this option (none)",
        ),
        (
            {
                "parameters": {"max_length": {"default": 1, "help": "x"}},
                "same_as": {"option": "baseline", "parameters": {"max_lenght": 1}},
            },
            "same_as.parameters.max_lenght is not a parameter of this option (max_length); "
            "did you mean max_length?",
        ),
        (
            {
                "parameters": {"max_length": {"default": 1, "help": "x"}},
                "same_as": {"option": "baseline", "parameters": {"max_length": "1"}},
            },
            "same_as.parameters.max_length must be int, got '1'",
        ),
    ],
)
def test_what_cannot_be_meant_is_said(more: dict[str, Any], part: str) -> None:
    option, problems = read(**more)

    assert option is None
    assert any(part in problem for problem in problems), problems


def test_a_file_that_is_no_mapping_is_said() -> None:
    problems: list[str] = []

    assert read_option("adapter", "lora", ["a"], problems) is None
    assert problems[0].startswith("must be a mapping with the keys summary")
