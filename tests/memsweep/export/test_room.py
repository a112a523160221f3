from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.errors import ConfigError
from memsweep.export.room import require_room


def test_a_folder_that_is_missing_or_empty_has_room(tmp_path: Path) -> None:
    require_room(tmp_path, is_forced=False)
    require_room(tmp_path / "new", is_forced=False)


def test_a_folder_that_holds_something_has_room_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()

    with pytest.raises(ConfigError, match="holds something already; name another folder, or type --force"):
        require_room(tmp_path, is_forced=False)
    require_room(tmp_path, is_forced=True)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()

    with pytest.raises(ConfigError, match="is a file"):
        require_room(tmp_path / "notes.txt", is_forced=True)
