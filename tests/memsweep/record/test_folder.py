"""Files are replaced in one step, and each has one name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.record.folder import StudyFolder, TrialFolder, read_json, write_json, write_text


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "one", durable=durable)
    write_text(path, "two", durable=durable)

    assert path.read_text() == "two"
    assert list(path.parent.iterdir()) == [path]


def test_json_is_sorted_and_ends_with_a_line_end(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "é"})

    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "a": "é",\n  "b": 1\n}\n'
    assert read_json(tmp_path / "a.json") == {"a": "é", "b": 1}


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff\xfe", b"{"])
def test_what_is_no_object_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(ValueError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_the_last_lines_are_those_of_stderr_or_else_of_stdout(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    assert folder.last_lines() == ()
    folder.stdout.write_text("out\n")
    assert folder.last_lines() == ("out",)
    folder.stderr.write_text("".join(f"line {number}\n\n" for number in range(30)))

    assert folder.last_lines(2) == ("line 28", "line 29")


def test_trials_lie_below_their_study(tmp_path: Path) -> None:
    assert StudyFolder(tmp_path).trial(3).path == tmp_path / "trials" / "3"


def make_folder(path: Path) -> None:
    path.mkdir()


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_folder, os.mkfifo, make_endless])
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = TrialFolder(tmp_path)
    make(folder.outcome)
    make(folder.stderr)
    folder.stdout.write_text("one\n")

    with pytest.raises(ValueError, match=r"outcome\.json is no file"):
        read_json(folder.outcome)
    assert folder.last_lines() == ("one",)


def test_a_folder_in_the_place_of_a_file_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "outcome.json"
    path.mkdir()
    (path / "kept").touch()
    write_text(path, "one")

    assert path.read_text() == "one"
    assert (tmp_path / "outcome.json.damaged-1" / "kept").exists()


def test_text_that_no_utf_8_has_is_written_out(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"reason": "half a pair: \ud800"})

    assert read_json(tmp_path / "a.json") == {"reason": r"half a pair: \ud800"}
