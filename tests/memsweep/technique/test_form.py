from __future__ import annotations

from memsweep.technique.form import as_list, did_you_mean, expressions, only


def test_a_name_that_is_like_a_known_one_is_asked_about() -> None:
    assert did_you_mean("becuase", ["because", "source"]) == "; did you mean because?"
    assert did_you_mean("argument", ["arguments"], "trainer.") == "; did you mean trainer.arguments?"
    assert did_you_mean("packing", ["adapter", "length"]) == ""


def test_known_keys_are_listed_only_where_none_is_like_the_unknown() -> None:
    problems: list[str] = []
    only({"serach": 1}, ["default", "search"], "here", problems)
    only({"colour": 1}, ["default", "search"], "here", problems)
    only({"default": 1}, ["default", "search"], "here", problems)

    assert problems == [
        "here has no key serach; did you mean search?",
        "here has no key colour; it may have default, search",
    ]


def test_one_value_is_a_list_of_it() -> None:
    assert [as_list(value) for value in (None, "a", ["a", "b"], 0)] == [[], ["a"], ["a", "b"], [0]]


def test_expressions_are_found_however_deep() -> None:
    assert list(expressions({"a": ["${x}", {"b": "n-${y}-${z}"}], "c": "{w}", "d": 1})) == ["x", "y", "z"]
