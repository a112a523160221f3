"""One process at a time has a study, and its end gives it to the next, whatever it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memsweep.errors import ConfigError, StudyBusy
from memsweep.record.folder import StudyFolder
from memsweep.study.lock import StudyLock, is_busy

HOLDER = """
import os, sys, time
from pathlib import Path
from memsweep.record.folder import StudyFolder
from memsweep.study.lock import StudyLock
with StudyLock(StudyFolder(Path(sys.argv[1]))):
    if os.fork() == 0:
        os.close(1)
        time.sleep(20)  # what a controller leaves behind
        os._exit(0)
    print("held", flush=True)
    time.sleep(20)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    source = Path(__file__).parents[3] / "src"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_refused_with_who_has_it_and_what_to_type(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = StudyFolder(tmp_path)
    try:
        with pytest.raises(StudyBusy) as error, StudyLock(folder):
            pass
        assert is_busy(folder)
    finally:
        os.killpg(holder.pid, 9)
        holder.wait()

    assert f"process {holder.pid} on " in str(error.value)
    assert "hydra.sweeper.study_name=" in str(error.value)


def test_what_a_killed_holder_leaves_behind_does_not_keep_it(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    try:
        holder.kill()
        holder.wait()
        began = time.monotonic()
        with StudyLock(StudyFolder(tmp_path)):
            pass
    finally:
        os.killpg(holder.pid, 9)

    assert time.monotonic() - began < 1.0


def test_it_is_free_after_the_block(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "new")
    for _ in range(2):
        with StudyLock(folder):
            assert folder.lock.read_text().startswith(f"process {os.getpid()} on ")

    assert folder.lock.read_text() == ""
    assert not is_busy(folder)


def test_a_folder_that_cannot_be_made_is_answered_with_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(ConfigError, match=r"cannot be written \(Not a directory\).*hydra\.sweep\.dir="),
        StudyLock(StudyFolder(tmp_path / "file" / "study")),
    ):
        pass
