"""The cache folder of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny import share_cache


@pytest.fixture
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The session's cache folder: what is expensive to make is made once for all tests."""
    return share_cache(tmp_path_factory, monkeypatch)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that nobody else uses, empty."""
    monkeypatch.setenv("MEMSWEEP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
