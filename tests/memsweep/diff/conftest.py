"""Git repositories and trial folders to compare, made for one test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from diff_cases import git

from memsweep.record.folder import TrialFolder


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see this repository's conf, nor keep anything in the user's cache."""
    monkeypatch.delenv("MEMSWEEP_CONF", raising=False)
    monkeypatch.setenv("MEMSWEEP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with two commits and nothing but a config file in conf/."""
    root = tmp_path / "checkout"
    (root / "conf" / "experiment").mkdir(parents=True)
    (root / "conf" / "config.yaml").write_text("seed: 0\n")
    (root / "conf" / "experiment" / "small.yaml").write_text("seed: 1\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    git(root, "tag", "v1")
    (root / "conf" / "config.yaml").write_text("seed: 2\n")
    git(root, "commit", "-q", "-a", "-m", "second")
    return root


@pytest.fixture
def make_trial(tmp_path: Path) -> Callable[..., TrialFolder]:
    """A function that writes a trial's folder: its config and, where given, what was in force."""

    def make(
        number: int,
        config: Mapping[str, Any],
        effective: Mapping[str, Any] | None = None,
        typed: tuple[str, ...] = (),
    ) -> TrialFolder:
        folder = TrialFolder(tmp_path / "outputs" / "study" / "trials" / str(number))
        folder.path.mkdir(parents=True)
        folder.config.write_text(yaml.safe_dump(dict(config)))
        folder.overrides.write_text("".join(f"{text}\n" for text in typed))
        if effective is not None:
            folder.effective.write_text(json.dumps(effective))
        return folder

    return make
