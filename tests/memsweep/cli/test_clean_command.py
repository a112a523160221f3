"""`memsweep clean` and `memsweep rebuild` as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.cli.command import main
from memsweep.record.asked import Asked
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Measured
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialRecord


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> StudyFolder:
    """A study of three trials: the baseline, one that it dominates, and the front."""
    study = StudyFolder(tmp_path / "study")
    Study(
        name="study", created="then", command="python app.py -m", objectives={"speed": Direction.MAXIMIZE}
    ).write(study)
    for number, speed in enumerate((2.0, 1.0, 3.0)):
        trial = study.trial(number)
        Asked(number=number, overrides=(f"x={number}",), is_baseline=number == 0).write(trial)
        TrialRecord(outcome=Measured(measures={"speed": speed})).write(trial)
        trial.stderr.write_text("words " * 1000)
    assert main(["rebuild", str(study.path)]) == 0
    capsys.readouterr()
    return study


def logs(folder: StudyFolder) -> list[int]:
    return [number for number in range(3) if folder.trial(number).stderr.exists()]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ([], [0, 2]),
        (["--keep", "front"], [0, 2]),
        (["--keep", "none"], []),
        (["--keep", "1, 2"], [1, 2]),
        (["--keep", "measured"], [0, 1, 2]),
    ],
)
def test_what_is_kept_is_kept(
    folder: StudyFolder, keep: list[str], expected: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clean", str(folder.path), *keep]) == 0
    assert logs(folder) == expected
    assert f"freed in {3 - len(expected)} trial folder(s)" in capsys.readouterr().out


def test_a_dry_run_says_what_it_would_free(folder: StudyFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", str(folder.path), "--keep=none", "--dry-run"]) == 0
    assert logs(folder) == [0, 1, 2]
    assert "would be freed in 3 trial folder(s)" in capsys.readouterr().out


@pytest.mark.parametrize("keep", ["fronts", "7", "1,x", ""])
def test_what_cannot_be_kept_is_answered_with_what_can(
    folder: StudyFolder, keep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clean", str(folder.path), f"--keep={keep}"]) == 2
    assert "--keep must be front, measured, none or numbers of trials" in capsys.readouterr().err
    assert logs(folder) == [0, 1, 2]


def test_a_thinned_study_is_rebuilt_as_it_was(folder: StudyFolder) -> None:
    before = folder.results.read_bytes()
    main(["clean", str(folder.path), "--keep=none"])
    folder.results.unlink()

    assert main(["rebuild", str(folder.path)]) == 0
    assert folder.results.read_bytes() == before


@pytest.mark.parametrize("command", ["rebuild", "clean"])
def test_what_is_no_study_is_said(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()

    assert main([command, str(tmp_path / "empty")]) == 2
    assert "study.json" in capsys.readouterr().err
    assert list((tmp_path / "empty").iterdir()) == []
