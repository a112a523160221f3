from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_printed import FOUND

from memsweep.errors import ConfigError
from memsweep.lengths.drawing import write_picture
from memsweep.lengths.table import Bin


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg", "one.png", "two.png"):
        write_picture(FOUND, tmp_path / name)

    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    ElementTree.parse(tmp_path / "one.svg")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_a_long_tail_does_not_hide_the_rest(tmp_path: Path) -> None:
    tail = Bin(low=64, high=90_000, n_sequences=1)

    write_picture(dataclasses.replace(FOUND, distribution=(*FOUND.distribution, tail)), tmp_path / "tail.svg")

    assert "to 90,000" in (tmp_path / "tail.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "words"), [("x.jpg", "is .svg or .png"), ("nowhere/x.svg", "no folder")])
def test_a_picture_that_cannot_be_written_is_refused(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        write_picture(FOUND, tmp_path / name)
