"""A thinned study is the same study with less on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.record.asked import Asked
from memsweep.record.folder import StudyFolder, TrialFolder
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialRecord
from memsweep.study.thin import thin

RECORD = ["config.yaml", "effective.json", "outcome.json", "overrides.txt", "trial.json"]


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """Two trials that have finished, one with a repeat, and one that has not."""
    study = StudyFolder(tmp_path / "study")
    for number in range(3):
        trial = study.trial(number)
        Asked(number=number).write(trial)
        for place in (trial, trial.repeat(1)) if number == 1 else (trial,):
            fill(place)
            if number != 2:
                TrialRecord(outcome=Measured(measures={"speed": 1.0})).write(place)
    return study


def fill(trial: TrialFolder) -> None:
    (trial.path / "checkpoint").mkdir(parents=True)
    (trial.path / "checkpoint" / "weights").write_bytes(b"w" * 100_000)
    for name in ("config.yaml", "effective.json", "overrides.txt", "stdout.log"):
        (trial.path / name).write_text("text")


def names(path: Path) -> list[str]:
    return sorted(inner.name for inner in path.iterdir())


def test_what_a_trial_was_and_how_it_ended_stays(folder: StudyFolder) -> None:
    found = thin(folder, keep=tuple)

    assert [one.number for one in found] == [0, 1]
    assert names(folder.trial(0).path) == RECORD
    assert names(folder.trial(1).path) == sorted([*RECORD, "repeats"])
    assert names(folder.trial(1).repeat(1).path) == [name for name in RECORD if name != "trial.json"]
    assert all(one.n_bytes >= 100_000 for one in found)


def test_trials_that_are_kept_or_have_not_finished_stay_whole(folder: StudyFolder) -> None:
    found = thin(folder, keep=lambda: {1})

    assert [one.number for one in found] == [0]
    assert "checkpoint" in names(folder.trial(1).path)
    assert "checkpoint" in names(folder.trial(2).path)


def test_a_dry_run_removes_nothing_and_says_the_same(folder: StudyFolder) -> None:
    said = thin(folder, keep=tuple, is_dry=True)

    assert "checkpoint" in names(folder.trial(0).path)
    assert thin(folder, keep=tuple) == said


def test_links_are_removed_and_not_followed(folder: StudyFolder, tmp_path: Path) -> None:
    outside = tmp_path / "mine"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (folder.trial(0).path / "link").symlink_to(outside)
    thin(folder, keep=tuple)

    assert not (folder.trial(0).path / "link").is_symlink()
    assert (outside / "file").read_text() == "mine"
