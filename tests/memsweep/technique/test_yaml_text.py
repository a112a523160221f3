from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memsweep.technique.yaml_text import parse_yaml, read_yaml

REPOSITORY = Path(__file__).resolve().parents[3]


def test_every_file_of_conf_reads_as_omegaconf_reads_it() -> None:
    for file in sorted((REPOSITORY / "conf").rglob("*.yaml")):
        assert read_yaml(file) == OmegaConf.to_container(OmegaConf.load(file), resolve=False), file


def test_numbers_with_an_exponent_are_numbers_and_dates_are_text() -> None:
    assert parse_yaml("[1e-3, 2E5, 1.5, -3e+2, 2026-11-29]") == [1e-3, 2e5, 1.5, -300.0, "2026-11-29"]


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="the key a is there twice"):
        parse_yaml("a: 1\nb: 2\na: 3\n")


def test_text_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(ValueError, match="not readable as YAML"):
        parse_yaml("a: [1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\nb: 3\n", "line 3, column 1: the key b is there twice"),
        (
            "a: x\n\tb: y\n",
            "line 2, column 1: .* since line 1; indent with spaces, not with tabs",
        ),
        (
            "a: 1\nb: one: two\n",
            'line 2, column 7: .*; quote a text that holds a colon and a space: "one: two"',
        ),
        ("a: {b: one: two}\n", "line 1, column 1.: .*; quote a text that holds a colon and a space"),
        (
            "a:\n  b: {c: ${d}}\n",
            r'line 2, column 1.: .*; within \{...\} quote what is filled in: "\${name}"',
        ),
        ("a: @b\n", "line 1, column 4: .*; quote a text that begins with @"),
        ("a: {b: 'x: ${y}'\nc: 1\n", r"line 2, column 1: .*, while parsing a flow mapping since line 1$"),
        ("b: 1\na: \x07\n", "line 2: control characters are not allowed$"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line_and_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"not readable as YAML: .*{message}") as error:
        parse_yaml(text)

    assert "unicode string" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_expressions_stay_text() -> None:
    assert parse_yaml('a: "${b}"') == {"a": "${b}"}
