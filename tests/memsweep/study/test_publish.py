from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study
from memsweep.report import files
from memsweep.study import publish
from memsweep.study.publish import Publisher


def ended(folder: StudyFolder) -> Any:
    """Return as much of a study's book as is published."""
    study, results = read_study(folder.path)
    return SimpleNamespace(study=study, results=list(results))


def test_a_study_ends_with_every_form_of_its_report(
    make_study: Callable[..., StudyFolder],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(files, "write_pictures", lambda *_: ())
    folder = make_study()

    Publisher(folder, {}).end(ended(folder), 0, [("study", folder.path)])

    printed = capsys.readouterr().out
    assert f"report: {folder.report}" in printed
    assert f"report as Markdown: {folder.report_markdown}" in printed
    assert printed.rstrip().endswith(f"study: {folder.path}")


def test_whatever_cannot_be_drawn_costs_the_study_a_warning(
    make_study: Callable[..., StudyFolder],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no fonts")

    monkeypatch.setattr(files, "write_pictures", broken)
    folder = make_study()

    with caplog.at_level(logging.WARNING):
        Publisher(folder, {}).end(ended(folder), 0, [])

    assert "the pictures could not be written (RuntimeError: no fonts)" in caplog.text
    assert folder.report.exists()
    assert folder.report_markdown.exists()
    assert "Pareto front of example" in capsys.readouterr().out


@pytest.mark.parametrize("end", [OSError(28, "No space left on device"), SystemExit(1)])
def test_an_output_that_takes_nothing_more_keeps_no_study_from_its_end(
    make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    def full(*_: object) -> None:
        raise end

    monkeypatch.setattr(files, "write_pictures", lambda *_: ())
    monkeypatch.setattr(publish, "print_study", full)
    folder = make_study()

    Publisher(folder, {}).end(ended(folder), 0, [])

    assert folder.report.exists()
