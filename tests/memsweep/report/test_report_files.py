from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study
from memsweep.report import files
from memsweep.report.files import write_reports


def write(folder: StudyFolder, **facts: Any) -> list[tuple[str, Path]]:
    study, results = read_study(folder.path)
    return write_reports(folder, results, study, **facts)


def test_every_form_is_written_and_the_text_links_to_the_pictures(
    make_study: Callable[..., StudyFolder],
) -> None:
    folder = make_study()

    written = write(folder)

    assert written == [
        ("report", folder.path / "report.html"),
        ("pictures", folder.path / "pictures"),
        ("report as Markdown", folder.path / "report.md"),
    ]
    text = folder.report_markdown.read_text(encoding="utf-8")
    links = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert links == ["pictures/front.svg", "pictures/ladder.svg", "pictures/effects.svg"]
    assert all((folder.path / link).exists() for link in links)


def test_a_form_that_cannot_be_written_is_told_and_the_others_are_written(
    make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no fonts")

    monkeypatch.setattr(files, "write_pictures", broken)
    folder, told = make_study(), []

    written = write(folder, failed=lambda name, error: told.append((name, str(error))))

    assert told == [("pictures", "no fonts")]
    assert [name for name, _ in written] == ["report", "report as Markdown"]
    assert "![" not in folder.report_markdown.read_text(encoding="utf-8")


def test_without_someone_to_tell_the_error_goes_on(
    make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no fonts")

    monkeypatch.setattr(files, "write_pictures", broken)

    with pytest.raises(RuntimeError, match="no fonts"):
        write(make_study())
