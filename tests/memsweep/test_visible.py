from __future__ import annotations

import json

import pytest

from memsweep.visible import visible, visible_data, visible_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[1;1H", r"\x1b[2J\x1b[1;1H"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("shown\rhidden", r"shown\x0dhidden"),
        ("\x9b2J", r"\x9b2J"),
        ("a\u202eb", r"a\u202eb"),
        ("\x7f", r"\x7f"),
        ("\x00", r"\x00"),
        ("a\ud800", r"a\ud800"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_colours_are_dropped() -> None:
    assert visible("\x1b[1;31mred\x1b[0m") == "red"


@pytest.mark.parametrize(
    "text", ["a\tb\nc", "naïve \N{PLUS-MINUS SIGN} 3 %", "", r"C:\bin\file", "\U0001f600"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert visible_json(json.dumps(text)) == text
    assert visible_json(json.dumps(text, ensure_ascii=False)) == text


@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("text", ["\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\r", "\b", "\f"])
def test_json_with_such_a_text_is_found_however_it_is_written(text: str, is_ascii: bool) -> None:
    written = json.dumps({f"key{text}": [text]}, ensure_ascii=is_ascii)

    assert visible_json(written) == {f"key{visible(text)}": [visible(text)]}
    assert text not in json.dumps(visible_json(written), ensure_ascii=False)


def test_other_values_stay_as_they_are() -> None:
    data = {"a": [1, 2.5, None, True, {"b": "c"}]}

    assert visible_data(data) == data


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_in_json_is_refused(constant: str) -> None:
    with pytest.raises(ValueError, match=f"{constant} is no number in JSON"):
        visible_json(f'{{"a": [{constant}]}}')
