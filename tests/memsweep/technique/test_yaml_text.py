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


def test_expressions_stay_text() -> None:
    assert parse_yaml('a: "${b}"') == {"a": "${b}"}
