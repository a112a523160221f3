from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.links import require_closed


@pytest.fixture
def folder(make_study: Callable[..., StudyFolder]) -> StudyFolder:
    return make_study()


LINKS = (
    ".lock",
    "report.html",
    "study.db",
    "anything",
    "pictures",
    "trials/0/stderr.log",
    "trials/0/stdout.log",
    "trials/0/config.yaml",
    "trials/0/.hydra",
    "trials/0/.hydra/hydra.yaml",
    "trials/0/repeats/1",
    "trials/0/repeats/1/stderr.log",
    "trials/0/ranks/1/stderr.log",
    "trials/0/tries",
    "trials/7",
    "trials/7/stderr.log",
    "trials/7/train.log",
    "wandb",
    "wandb/process.log",
    "wandb/logged.json",
)


@pytest.mark.parametrize("name", LINKS)
def test_a_link_out_of_a_study_is_refused_where_memsweep_would_follow_it(
    name: str, folder: StudyFolder, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = folder.path / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)

    with pytest.raises(ConfigError, match=f"{link} is a link to {elsewhere}"):
        require_closed(folder)


def test_a_link_to_what_is_not_there_is_refused_too(folder: StudyFolder, tmp_path: Path) -> None:
    folder.lock.symlink_to(tmp_path / "made when written")

    with pytest.raises(ConfigError, match=r"\.lock is a link"):
        require_closed(folder)


def test_links_within_a_study_are_no_way_out(folder: StudyFolder) -> None:
    folder.wandb.mkdir()
    (folder.wandb / "offline-run-1").mkdir()
    (folder.wandb / "latest-run").symlink_to("offline-run-1")

    require_closed(folder)


def test_a_link_of_the_apps_in_a_trials_folder_is_its_own_affair(folder: StudyFolder, tmp_path: Path) -> None:
    checkpoints = folder.trial(0).path / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "last.ckpt").symlink_to(tmp_path / "moved since")
    (checkpoints / "config.yaml").symlink_to(tmp_path / "moved since")
    (folder.trial(0).path / "last.ckpt").symlink_to(tmp_path / "moved since")

    require_closed(folder)


def test_what_a_run_of_wandb_links_to_is_its_own_affair(folder: StudyFolder, tmp_path: Path) -> None:
    logs = folder.wandb / "offline-run-1" / "logs"
    logs.mkdir(parents=True)
    (logs / "debug-core.log").symlink_to(tmp_path / "moved since")

    require_closed(folder)


def test_a_study_that_is_itself_reached_by_a_link_is_one(folder: StudyFolder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder.path)

    require_closed(StudyFolder(tmp_path / "link"))


def test_a_pipe_is_refused_which_would_be_waited_for(folder: StudyFolder) -> None:
    os.mkfifo(folder.path / "front.csv")

    with pytest.raises(ConfigError, match=r"front\.csv is neither a file nor a folder"):
        require_closed(folder)


def test_settings_of_wandb_are_refused_which_say_where_keys_go(folder: StudyFolder) -> None:
    folder.wandb.mkdir()
    (folder.wandb / "settings").write_text("[default]\nbase_url = http://evil\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="to which server"):
        require_closed(folder)


def test_a_study_that_is_not_there_has_no_links(tmp_path: Path) -> None:
    require_closed(StudyFolder(tmp_path / "none"))


def test_many_links_are_counted(folder: StudyFolder, tmp_path: Path) -> None:
    for number in range(8):
        (folder.path / f"link-{number}").symlink_to(tmp_path)

    with pytest.raises(ConfigError, match="and 3 more"):
        require_closed(folder)
