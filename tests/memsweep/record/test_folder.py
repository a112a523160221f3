"""Files are replaced in one step, and each has one name."""

from __future__ import annotations

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
