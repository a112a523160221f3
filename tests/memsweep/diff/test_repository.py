from __future__ import annotations

from pathlib import Path

import pytest
from diff_cases import git

from memsweep.diff.repository import Project, find_project
from memsweep.errors import ConfigError


def test_the_project_is_found_from_a_folder_within_it(checkout: Path) -> None:
    assert find_project(checkout / "conf" / "experiment") == Project(checkout)


def test_outside_of_a_project_it_is_said_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no conf/config\.yaml in .*set MEMSWEEP_CONF"):
        find_project(tmp_path)


def test_a_conf_folder_of_another_name_is_found(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "conf").rename(checkout / "settings")
    monkeypatch.setenv("MEMSWEEP_CONF", str(checkout / "settings"))

    assert find_project(checkout).files(None).keys() == {
        "settings/config.yaml",
        "settings/experiment/small.yaml",
    }


def test_equal_content_has_equal_hashes_at_a_commit_and_in_the_working_tree(checkout: Path) -> None:
    project = Project(checkout)

    assert project.files(project.commit("HEAD")) == project.files(None)
    assert project.files(project.commit("v1")) != project.files(None)


def test_only_files_that_decide_of_a_config_count(checkout: Path) -> None:
    project, before = Project(checkout), Project(checkout).files(None)
    (checkout / "conf" / "README.md").write_text("prose")
    (checkout / "train.py").write_text("pass")

    assert project.files(None) == before


def test_a_commit_is_exported_as_it_was(checkout: Path, tmp_path: Path) -> None:
    project = Project(checkout)
    commit = project.commit("v1")
    assert commit is not None

    project.export(commit, tmp_path / "there")

    assert (tmp_path / "there" / "conf" / "config.yaml").read_text() == "seed: 0\n"


def test_a_project_below_the_repositorys_root_is_read_there(tmp_path: Path) -> None:
    root = tmp_path / "many" / "one"
    (root / "conf").mkdir(parents=True)
    (root / "conf" / "config.yaml").write_text("seed: 0\n")
    git(tmp_path / "many", "init", "-q")
    git(tmp_path / "many", "add", "-A")
    git(tmp_path / "many", "commit", "-q", "-m", "first")
    project = find_project(root)
    commit = project.commit("HEAD")
    assert commit is not None

    project.export(commit, tmp_path / "there")

    assert project.files(commit) == project.files(None)
    assert (tmp_path / "there" / "conf" / "config.yaml").exists()


def test_a_commit_without_a_configuration_says_so(checkout: Path) -> None:
    project = Project(checkout, "settings")

    with pytest.raises(ConfigError, match=r"commit [0-9a-f]{12} has no settings/config\.yaml"):
        project.files(project.commit("HEAD"))


@pytest.mark.parametrize("ref", ["nothing", "--help", "HEAD:conf", ""])
def test_what_is_no_commit_is_none(ref: str, checkout: Path) -> None:
    assert Project(checkout).commit(ref) is None


def test_a_link_out_of_the_project_is_not_read_as_a_config(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("password: canary\n")
    (checkout / "conf" / "experiment" / "small.yaml").unlink()
    (checkout / "conf" / "experiment" / "small.yaml").symlink_to(tmp_path / "secret.yaml")
    git(checkout, "commit", "-q", "-a", "-m", "a link")
    project = Project(checkout)

    with pytest.raises(ConfigError, match=r"small\.yaml is a link to .*secret\.yaml"):
        project.files(None)
    project.export(str(project.commit("HEAD")), tmp_path / "exported")
    assert not (tmp_path / "exported" / "conf" / "experiment" / "small.yaml").exists()
