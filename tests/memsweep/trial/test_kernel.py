"""Small questions to Linux, against what is known to be true."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsweep.trial import kernel


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], env={"MARK": secrets.token_hex(8)}) as child:
        yield child
        child.kill()


def test_a_child_is_among_the_children(child: subprocess.Popen[bytes]) -> None:
    assert child.pid in kernel.children(os.getpid())


def test_a_kernel_without_the_children_file_is_asked_otherwise(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.read_text

    def without(self: Path, *args: str, **kwargs: str) -> str:
        if self.name == "children":
            raise FileNotFoundError(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", without)

    assert child.pid in kernel.children(os.getpid())


def test_a_process_is_found_and_ended_by_what_it_was_started_with() -> None:
    mark = secrets.token_hex(8)
    child = subprocess.Popen(["sleep", "60"], env={"MARK": mark})

    assert kernel.processes_with("MARK", mark) == [child.pid]
    assert kernel.processes_with("MARK", mark[:-1]) == []
    kernel.kill_all_with("MARK", mark, timeout_seconds=0.1)
    assert child.wait(5) == -9


def test_ending_what_is_not_there_is_no_error() -> None:
    child = subprocess.Popen(["true"])
    child.wait()

    kernel.kill(child.pid)


def test_threads_and_devices_are_seen(tmp_path: Path) -> None:
    with Path("/dev/null").open("rb"):
        assert "/dev/null" in kernel.open_devices("/dev/nu")
    assert kernel.thread_names()


def test_out_of_memory_kills_are_counted_from_the_kernels_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 5\noom_kill 3\n")
    monkeypatch.setattr(kernel, "_memory_events", lambda: iter([events, tmp_path / "absent"]))
    before = kernel.n_oom_kills()
    events.write_text("low 0\noom 6\noom_kill 4\n")

    assert kernel.n_oom_kills() - before == 1
