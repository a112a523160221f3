"""A trial's temporary files: whose they are, and that nothing of a killed one is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsweep.technique.settings import Settings
from memsweep.trial.environment import trial_environment
from memsweep.trial.isolate import ProcessPool, ProcessRequest, pickled
from memsweep.trial.launch import PRELOAD
from memsweep.trial.rooms import Rooms, move_in
from tiny import tiny_config


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rooms are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def compiled(room: Path) -> Path:
    """Leave what torch's compiler would, and something else."""
    folder = room / "torchinductor_root"
    folder.mkdir(exist_ok=True)
    (folder / "a.so").write_text("whole")
    (room / "other").mkdir(exist_ok=True)
    (room / "file").touch()
    return folder / "a.so"


def test_nothing_of_a_trial_that_was_killed_is_met_by_another() -> None:
    with Rooms() as rooms:
        with rooms.taken() as first:
            left = compiled(first.path)
        with rooms.taken() as second:
            assert not left.exists()
            assert list(second.path.iterdir()) == []


def test_what_was_compiled_in_a_room_left_in_order_serves_the_next_trial() -> None:
    with Rooms() as rooms:
        with rooms.taken() as first:
            compiled(first.path)
            first.is_in_order = True
        with rooms.taken() as second:
            assert second.path == first.path
            assert [path.name for path in second.path.iterdir()] == ["torchinductor_root"]


@pytest.mark.parametrize("gone", ["the room", "all rooms", "the temporary folder"])
def test_rooms_that_somebody_cleans_away_are_made_anew(gone: str, temporary: Path) -> None:
    with Rooms() as rooms:
        with rooms.taken() as first:
            first.is_in_order = True
            house = first.path.parent
            shutil.rmtree({"the room": first.path, "all rooms": house}.get(gone, temporary))
        with rooms.taken() as during:
            during.is_in_order = True
        shutil.rmtree(during.path if gone == "the room" else during.path.parent)
        with rooms.taken() as later:
            assert later.path.is_dir()


def test_trials_side_by_side_have_rooms_of_their_own() -> None:
    with Rooms() as rooms, rooms.taken() as one, rooms.taken() as other:
        assert one.path != other.path
        assert one.environment["TMPDIR"] == str(one.path)


def test_rooms_end_with_what_has_them(temporary: Path) -> None:
    with Rooms() as rooms, rooms.taken() as room:
        compiled(room.path)
        room.is_in_order = True

    assert list(temporary.glob("memsweep-rooms-*")) == []


def test_the_rooms_of_a_killed_program_are_removed_and_those_of_a_living_one_are_not(temporary: Path) -> None:
    script = "from memsweep.trial.rooms import Rooms; r = Rooms().taken(); r.__enter__(); "
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = "import os; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script + killed], env=environment, check=False, timeout=60)
    (left,) = temporary.glob("memsweep-rooms-*")

    with Rooms() as living, living.taken() as room:
        assert not left.exists()
        with Rooms() as others, others.taken():
            assert room.path.exists()


def test_what_was_compiled_serves_one_program_after_the_other(temporary: Path) -> None:
    with Rooms() as rooms, rooms.taken() as first:
        compiled(first.path)
        first.is_in_order = True
    with Rooms() as rooms, rooms.taken() as second, rooms.taken() as third:
        assert [path.name for path in second.path.iterdir()] == ["torchinductor_root"]
        assert list(third.path.iterdir()) == []  # one has it at a time
    with Rooms() as rooms, rooms.taken() as fourth:
        assert list(fourth.path.iterdir()) == []  # the second did not leave it in order


def test_what_others_could_have_put_there_is_not_used(temporary: Path) -> None:
    with Rooms() as rooms, rooms.taken() as first:
        compiled(first.path)
        first.is_in_order = True
    (store,) = temporary.glob("memsweep-compiled-*")
    store.chmod(0o777)

    with Rooms() as rooms, rooms.taken() as second:
        assert list(second.path.iterdir()) == []


@pytest.mark.slow
def test_torchs_compiler_keeps_to_the_room_though_the_template_has_imported_it(tmp_path: Path) -> None:
    def places() -> tuple[str, str, str]:
        import tempfile

        from torch._inductor import codecache
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        move_in()
        return tempfile.gettempdir(), cache_dir(), codecache._HEADER_DIR

    folder = tmp_path / "trial"
    folder.mkdir()
    with Rooms() as rooms, rooms.taken() as room, ProcessPool(start_method="fork") as pool:
        environment = {**trial_environment(tiny_config(), Settings(), os.environ), **room.environment}
        request = ProcessRequest(
            function=pickled(places), environment=environment, folder=folder, preload=PRELOAD
        )
        found, compiled_code, headers = pool.run(request).returned

        assert found == str(room.path)
        assert Path(compiled_code).parent == Path(headers).parent.parent == room.path
