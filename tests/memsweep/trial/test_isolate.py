"""What survives a trial, and what does not: each way to end, seen from the parent.

No torch: what is proved here holds whatever a template has imported.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memsweep.errors import ConfigError, ProcessEnded, TrialError
from memsweep.record.outcome import Phase
from memsweep.trial import process, watch
from memsweep.trial.isolate import ProcessEnd, ProcessPool, ProcessRequest, StartMethod, pickled
from memsweep.trial.lease import Lease

Run = Callable[..., ProcessEnd]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPool]:
    with ProcessPool() as pool:
        yield pool


@pytest.fixture
def run(pool: ProcessPool, tmp_path: Path) -> Run:
    """Run a function in the shared pool."""

    def run(function: Callable[[], Any], **facts: Any) -> ProcessEnd:
        environment = facts.pop("environment", os.environ)
        on_phase = facts.pop("on_phase", None)
        one = facts.pop("pool", pool)
        request = ProcessRequest(
            function=pickled(function), environment=dict(environment), folder=tmp_path, **facts
        )
        return one.run(request, on_phase)

    return run


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def wait_for_pid(file: Path) -> int:
    assert wait_until(lambda: file.exists() and file.read_text() != "")
    return int(file.read_text())


class TestEnds:
    def test_a_result_comes_back(self, run: Run) -> None:
        end = run(lambda: {"tokens": 3})

        assert (end.returned, end.has_returned, end.exit_code, end.signal) == ({"tokens": 3}, True, 0, None)

    def test_a_result_of_none_is_a_result(self, run: Run) -> None:
        end = run(lambda: None)

        assert (end.returned, end.has_returned) == (None, True)

    def test_an_exception_comes_back_with_its_traceback(self, run: Run) -> None:
        def wrong() -> None:
            raise KeyError("adapter")

        end = run(wrong)

        assert isinstance(end.error, KeyError)
        assert "in wrong" in str(end.error.__cause__)
        assert end.last_lines[-1] == "KeyError: 'adapter'"

    def test_an_exception_that_cannot_be_pickled_is_described(self, run: Run) -> None:
        def wrong() -> None:
            error = ValueError("held by a lock")
            error.lock = threading.Lock()  # type: ignore[attr-defined]
            raise error

        end = run(wrong)

        assert isinstance(end.error, TrialError)
        assert str(end.error) == "ValueError: held by a lock"

    def test_an_exception_that_cannot_be_unpickled_is_described(self, run: Run) -> None:
        class TwoArguments(Exception):
            def __init__(self, one: int, two: int) -> None:
                super().__init__(f"{one} and {two}")

        def wrong() -> None:
            raise TwoArguments(1, 2)

        end = run(wrong)

        assert str(end.error) == "TwoArguments: 1 and 2"

    def test_a_result_that_cannot_be_pickled_is_an_error_that_says_so(self, run: Run) -> None:
        end = run(threading.Lock)

        assert not end.has_returned
        assert "its result, a lock, cannot be sent" in str(end.error)

    @pytest.mark.parametrize(
        ("leave", "code"),
        [
            (lambda: sys.exit(3), 3),
            (lambda: os._exit(3), 3),
            (lambda: sys.exit(), 0),
            (lambda: sys.exit("a message"), 1),
            (lambda: sys.exit(-1), 255),
        ],
        ids=["sys.exit(3)", "os._exit(3)", "sys.exit()", "sys.exit(message)", "sys.exit(-1)"],
    )
    def test_an_exit_keeps_its_code_and_is_no_result(self, run: Run, leave: Any, code: int) -> None:
        end = run(leave)

        assert (end.exit_code, end.signal, end.has_returned, end.error) == (code, None, False, None)

    def test_the_message_of_an_exit_is_in_the_log(self, run: Run) -> None:
        assert run(lambda: sys.exit("no such model")).last_lines == ("no such model",)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
    def test_a_signal_is_told_by_its_number(self, run: Run, number: int) -> None:
        end = run(lambda: os.kill(os.getpid(), number))

        assert (end.signal, end.exit_code, end.has_returned) == (number, None, False)

    def test_a_segmentation_fault_leaves_a_traceback(self, run: Run) -> None:
        end = run(lambda: ctypes.string_at(0))

        assert end.signal == signal.SIGSEGV
        assert any("Segmentation fault" in line for line in end.last_lines)

    def test_ctrl_c_inside_a_trial_is_an_error_of_that_trial(self, run: Run) -> None:
        assert isinstance(run(lambda: os.kill(os.getpid(), signal.SIGINT)).error, KeyboardInterrupt)

    def test_a_hang_is_ended_and_told_with_its_phase(self, run: Run) -> None:
        def hang() -> None:
            from memsweep.trial.process import report_phase

            report_phase(Phase.WARM_UP)
            time.sleep(60)

        end = run(hang, timeout_seconds=0.3)

        assert end.timed_out
        assert end.phase is Phase.WARM_UP
        assert 0.3 <= end.seconds["total"] < 3

    def test_a_hang_that_ignores_every_signal_is_ended(self, run: Run) -> None:
        def hang() -> None:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(60)

        assert run(hang, timeout_seconds=0.3).timed_out

    def test_a_result_larger_than_any_pipe_comes_back(self, run: Run) -> None:
        assert len(run(lambda: os.urandom(1) * 20_000_000).returned) == 20_000_000

    def test_a_function_larger_than_any_pipe_arrives(self, run: Run) -> None:
        large = b"x" * 20_000_000

        assert run(lambda: len(large)).returned == 20_000_000

    def test_a_fork_that_a_trial_makes_of_itself_sends_no_second_result(self, run: Run) -> None:
        def work() -> bytes:
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
            return b"parent" * 100_000 if pid else b"child" * 100_000

        assert run(work).returned == b"parent" * 100_000

    def test_a_trial_that_closes_every_descriptor_ends_without_a_result(self, run: Run) -> None:
        end = run(lambda: os.closerange(3, 1000))

        assert (end.has_returned, end.exit_code) == (False, 1)

    def test_a_folder_that_is_not_there_is_an_error_that_says_so(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        request = ProcessRequest(
            function=pickled(int), environment=dict(os.environ), folder=tmp_path / "absent"
        )

        assert isinstance(pool.run(request).error, FileNotFoundError)


class TestPhases:
    def test_phases_are_told_as_they_begin_and_timed(self, run: Run) -> None:
        def work() -> dict[str, float]:
            from memsweep.trial.process import phases, report_phase

            report_phase(Phase.BUILD)
            time.sleep(0.05)
            report_phase(Phase.MEASURE)
            return phases()

        heard: list[Phase] = []
        end = run(work, on_phase=heard.append)

        assert heard == [Phase.BUILD, Phase.MEASURE]
        assert list(end.seconds) == ["start", "build", "measure", "total"]
        assert end.seconds["build"] >= 0.05
        assert end.returned["build"] == pytest.approx(end.seconds["build"], abs=0.001)

    def test_what_a_listener_raises_ends_the_trial_first(self, run: Run, tmp_path: Path) -> None:
        def work() -> None:
            from memsweep.trial.process import report_phase

            (tmp_path / "pid").write_text(str(os.getpid()))
            report_phase(Phase.BUILD)
            time.sleep(60)

        def refuse(_: Phase) -> None:
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            run(work, on_phase=refuse)

        assert not is_running(wait_for_pid(tmp_path / "pid"))


class TestLogs:
    def test_what_children_of_a_trial_print_is_kept(self, run: Run, tmp_path: Path) -> None:
        def work() -> None:
            print("from Python")
            os.system("echo from a shell; echo to stderr >&2")

        run(work)

        assert sorted((tmp_path / "stdout.log").read_text().split("\n")) == [
            "",
            "from Python",
            "from a shell",
        ]
        assert (tmp_path / "stderr.log").read_text() == "to stderr\n"

    def test_what_was_printed_before_a_kill_is_kept(self, run: Run, tmp_path: Path) -> None:
        def work() -> None:
            print("last words")
            os.kill(os.getpid(), signal.SIGKILL)

        run(work)

        assert (tmp_path / "stdout.log").read_text() == "last words\n"

    def test_there_is_nothing_to_read_on_standard_input(self, run: Run) -> None:
        assert run(lambda: sys.stdin.read()).returned == ""


class TestIsolation:
    def test_order_makes_no_difference(self, run: Run) -> None:
        def a() -> str:
            import json as module

            seen = f"{os.environ.get('MARK')} {module.dumps.__name__} {Path.cwd()} {sys.path[0]} {sys.argv}"
            os.environ["MARK"] = "a"
            module.dumps = len  # type: ignore[assignment]
            os.chdir("/")
            sys.path.insert(0, "/a")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            return seen

        def b() -> str:
            import json as module

            return (
                f"{os.environ.get('MARK')} {module.dumps.__name__} {Path.cwd()} {sys.path[0]} "
                f"{signal.getsignal(signal.SIGTERM)!r}"
            )

        a_then_b = [run(a).returned, run(b).returned]
        b_then_a = [run(b).returned, run(a).returned]

        assert a_then_b == b_then_a[::-1]

    def test_a_trial_knows_that_it_is_one_and_its_parent_does_not(self, run: Run) -> None:
        from memsweep.trial.process import in_trial_process

        assert run(in_trial_process).returned is True
        assert in_trial_process() is False

    def test_the_working_directory_is_the_parents(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)

        assert run(os.getcwd).returned == str(tmp_path)

    def test_a_trial_leads_a_session_and_group_of_its_own(self, run: Run) -> None:
        pid, group, session = run(lambda: (os.getpid(), os.getpgid(0), os.getsid(0))).returned

        assert pid == group == session

    def test_exit_handlers_of_the_template_do_not_run_in_a_trial(self, tmp_path: Path, run: Run) -> None:
        (tmp_path / "with_handler.py").write_text("import atexit; atexit.register(print, 'handler ran')")
        with ProcessPool() as own, pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            run(lambda: None, pool=own, preload=("with_handler",))

        assert (tmp_path / "stdout.log").read_text() == ""


class TestEnvironment:
    def test_it_is_complete_and_nothing_else(self, run: Run) -> None:
        base = {"PATH": os.environ["PATH"], "ONLY": "this"}

        found = run(lambda: dict(os.environ), environment=base).returned

        for mark in ("MEMSWEEP_TEMPLATE", "MEMSWEEP_TRIAL"):
            del found[mark]
        assert found | base == found
        assert found.keys() - base.keys() <= {"LC_CTYPE"}  # Python's own, under the C locale

    def test_a_late_variable_is_in_force_in_the_same_template(self, run: Run) -> None:
        def look() -> tuple[str | None, int]:
            return os.environ.get("PYTORCH_ALLOC_CONF"), os.getppid()

        plain = run(look).returned
        other = run(look, environment={**os.environ, "PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}).returned
        again = run(look).returned

        assert [plain[0], other[0], again[0]] == [None, "max_split_size_mb:64", None]
        assert plain[1] == other[1] == again[1]

    def test_an_early_variable_is_in_force_from_the_first_instruction(self, run: Run) -> None:
        def look() -> tuple[bool, int]:
            return b"MALLOC_ARENA_MAX=1" in Path("/proc/self/environ").read_bytes().split(b"\0"), os.getppid()

        plain = run(look).returned
        early = run(look, environment={**os.environ, "MALLOC_ARENA_MAX": "1"}).returned

        assert (plain[0], early[0]) == (False, True)
        assert plain[1] != early[1]

    def test_hiding_every_device_asks_for_another_template(self, run: Run) -> None:
        one = run(os.getppid, environment={**os.environ, "CUDA_VISIBLE_DEVICES": "0"}).returned
        other = run(os.getppid, environment={**os.environ, "CUDA_VISIBLE_DEVICES": "1"}).returned
        none = run(os.getppid, environment={**os.environ, "CUDA_VISIBLE_DEVICES": ""}).returned

        assert one == other != none

    def test_settings_that_torch_has_not_taken_are_refused(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "torch.py").write_text(
            textwrap.dedent("""
                class _C:
                    def _accelerator_getAllocatorSettings():
                        return "read at import"
                class cuda:
                    def is_initialized():
                        return False
                class version:
                    cuda = None
            """)
        )
        with ProcessPool() as own, pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            environment = {**os.environ, "PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}
            end = run(lambda: 1, pool=own, preload=("torch",), environment=environment)

        assert "settings are 'read at import', asked for 'max_split_size_mb:64'" in str(end.error)


class TestOrphans:
    def test_a_sleeping_grandchild_is_ended_with_its_trial(self, run: Run, tmp_path: Path) -> None:
        def work() -> None:
            child = subprocess.Popen(["sleep", "60"])
            (tmp_path / "pid").write_text(str(child.pid))

        end = run(work)

        assert end.has_returned
        assert end.n_orphans == 1
        assert not is_running(wait_for_pid(tmp_path / "pid"))

    @pytest.mark.parametrize("how", ["returns", "hangs", "is killed"])
    def test_a_daemon_that_left_group_and_session_is_ended(self, run: Run, tmp_path: Path, how: str) -> None:
        def work() -> None:
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    (tmp_path / "pid").write_text(str(os.getpid()))
                    time.sleep(60)
                os._exit(0)
            os.wait()
            while not (tmp_path / "pid").exists():
                time.sleep(0.005)
            if how == "hangs":
                time.sleep(60)
            if how == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)

        end = run(work, timeout_seconds=1.0)

        assert end.timed_out == (how == "hangs")
        assert not is_running(wait_for_pid(tmp_path / "pid"))

    def test_a_killed_parent_leaves_nothing(self, tmp_path: Path) -> None:
        parent = start_parent(tmp_path)
        pids = [wait_for_pid(tmp_path / name) for name in ("trial", "daemon", "template")]
        parent.kill()
        parent.wait()

        assert wait_until(lambda: not any(is_running(pid) for pid in pids))

    def test_ctrl_c_ends_the_trial_and_is_raised_again(self, tmp_path: Path) -> None:
        parent = start_parent(tmp_path)
        pids = [wait_for_pid(tmp_path / name) for name in ("trial", "daemon")]
        parent.send_signal(signal.SIGINT)
        output, _ = parent.communicate(timeout=20)

        assert "KeyboardInterrupt, trial gone: True" in output
        assert wait_until(lambda: not any(is_running(pid) for pid in pids))

    def test_a_thread_that_ends_takes_no_template_with_it(self, run: Run, tmp_path: Path) -> None:
        with ProcessPool() as own:
            starter = threading.Thread(target=own.prepare, args=(dict(os.environ),))
            starter.start()
            starter.join()
            pids = [run(os.getppid, pool=own).returned for _ in range(2)]

        assert pids[0] == pids[1]


def start_parent(folder: Path) -> subprocess.Popen[str]:
    """Start a program whose trial, with a daemon of its own, sleeps."""
    script = f"""
        import os, subprocess, sys, time
        from pathlib import Path
        from memsweep.trial.isolate import ProcessPool, ProcessRequest, pickled
        folder = Path({str(folder)!r})
        def work():
            daemon = subprocess.Popen(["sleep", "60"], start_new_session=True)
            (folder / "daemon").write_text(str(daemon.pid))
            (folder / "template").write_text(str(os.getppid()))
            (folder / "trial").write_text(str(os.getpid()))
            time.sleep(60)
        with ProcessPool() as pool:
            try:
                pool.run(ProcessRequest(function=pickled(work), environment=dict(os.environ), folder=folder))
            except KeyboardInterrupt:
                gone = not Path("/proc", (folder / "trial").read_text()).exists()
                print("KeyboardInterrupt, trial gone:", gone)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, env=environment
    )


def leak(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a module that leaves 50 MiB in the process that has imported it whenever that forks."""
    (folder / "leaky.py").write_text(
        "import os\nheld = []\nos.register_at_fork(after_in_parent=lambda: held.append(b'x' * (50 << 20)))\n"
    )
    monkeypatch.syspath_prepend(folder)


class TestTemplates:
    def test_a_template_killed_under_a_trial_is_reported_and_replaced(self, run: Run, tmp_path: Path) -> None:
        def work() -> None:
            daemon = subprocess.Popen(["sleep", "60"], start_new_session=True)
            (tmp_path / "pid").write_text(str(daemon.pid))
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)

        end = run(work)

        assert end.template_died
        assert not is_running(wait_for_pid(tmp_path / "pid"))
        assert run(lambda: "next").returned == "next"

    def test_a_template_killed_while_idle_is_replaced_unseen(self, run: Run) -> None:
        before = run(os.getppid).returned
        os.kill(before, signal.SIGKILL)

        end = run(os.getppid)

        assert end.has_returned
        assert end.returned != before

    def test_a_template_that_no_longer_answers_goes_with_its_trial(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watch, "_GRACE_SECONDS", 0.3)

        def work() -> None:
            (tmp_path / "pid").write_text(str(os.getpid()))
            os.kill(os.getppid(), signal.SIGSTOP)
            time.sleep(60)

        end = run(work, timeout_seconds=0.3)

        assert end.timed_out
        assert not is_running(wait_for_pid(tmp_path / "pid"))
        assert run(lambda: "next").returned == "next"

    def test_a_template_that_somebody_stops_is_not_waited_for(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watch, "_LOOK_SECONDS", 0.2)

        assert run(lambda: os.kill(os.getppid(), signal.SIGSTOP), timeout_seconds=20.0).has_returned

    def test_the_least_recently_used_is_closed(self, run: Run) -> None:
        with ProcessPool(max_templates=2) as own:
            pids = {
                name: run(os.getppid, pool=own, environment={**os.environ, "NAME": name}).returned
                for name in ("a", "b", "c")
            }
            again = run(os.getppid, pool=own, environment={**os.environ, "NAME": "b"}).returned

            assert again == pids["b"]
            assert [is_running(pid) for pid in pids.values()] == [False, True, True]
        assert not any(is_running(pid) for pid in pids.values())

    def test_a_template_that_grows_is_renewed(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leak(tmp_path, monkeypatch)
        with ProcessPool() as own:
            pids = [run(os.getppid, pool=own, preload=("leaky",)).returned for _ in range(5)]

            assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 1]
            assert [is_running(pid) for pid in dict.fromkeys(pids)] == [False, False, True]

    def test_a_template_that_grows_under_a_trial_is_renewed_when_that_has_ended(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leak(tmp_path, monkeypatch)
        go = tmp_path / "go"

        def long() -> int:
            (tmp_path / "pid").write_text(str(os.getppid()))
            while not go.exists():
                time.sleep(0.01)
            return os.getppid()

        with ProcessPool() as own:
            ends: list[ProcessEnd] = []
            thread = threading.Thread(target=lambda: ends.append(run(long, pool=own, preload=("leaky",))))
            thread.start()
            first = wait_for_pid(tmp_path / "pid")
            others = [run(os.getppid, pool=own, preload=("leaky",)).returned for _ in range(3)]
            go.touch()
            thread.join()

            assert [*others, ends[0].returned] == [first] * 4
            assert run(os.getppid, pool=own, preload=("leaky",)).returned != first

    def test_preparing_starts_the_template_that_the_trial_gets(self, run: Run) -> None:
        with ProcessPool() as own:
            own.prepare(os.environ)
            (template,) = own._templates.values()

            assert run(os.getppid, pool=own).returned == template.pid

    def test_a_module_that_cannot_be_imported_is_said_once_and_stops_nothing(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        with ProcessPool() as own:
            ends = [run(lambda: 1, pool=own, preload=("no_such_module",)) for _ in range(2)]

        assert [end.returned for end in ends] == [1, 1]
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "no_such_module cannot be imported ahead of the trials" in caplog.text

    def test_a_module_that_ends_the_template_is_reported_with_its_last_lines(
        self, run: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "deadly.py").write_text(
            "import os, sys; print('about to abort', file=sys.stderr); os.abort()"
        )
        with ProcessPool() as own, pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            end = run(lambda: 1, pool=own, preload=("deadly",))

        assert isinstance(end.error, ProcessEnded)
        assert "ended while it was importing, signal 6" in str(end.error)
        assert "about to abort" in str(end.error)

    def test_imports_that_never_end_are_ended(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "endless.py").write_text("import time; time.sleep(60)")
        with ProcessPool(import_seconds=0.5) as own, pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            end = run(lambda: 1, pool=own, preload=("endless",))

        assert "did not finish its imports" in str(end.error)

    def test_a_parent_that_blocks_signals_waits_no_longer(self, run: Run) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGTERM])
        try:
            with ProcessPool() as own:
                end = run(lambda: 1, pool=own, timeout_seconds=5.0)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

        assert end.returned == 1

    def test_a_closed_pool_starts_anew(self, run: Run) -> None:
        own = ProcessPool()
        with own:
            first = run(os.getppid, pool=own).returned
        with own:
            second = run(os.getppid, pool=own).returned

        assert first != second
        assert not is_running(second)

    def test_a_parent_killed_while_the_template_imports_leaves_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "slow.py").write_text(
            "import os, pathlib, time\n"
            f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
            "while True: time.sleep(0.01)"
        )
        script = (
            "import os, time; from memsweep.trial.isolate import ProcessPool; pool = ProcessPool(); "
            "pool.prepare(dict(os.environ), ('slow',)); time.sleep(60)"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        parent = subprocess.Popen([sys.executable, "-c", script], env=environment)
        pid = wait_for_pid(tmp_path / "pid")
        parent.kill()
        parent.wait()

        assert wait_until(lambda: not is_running(pid))


class TestStartMethods:
    @pytest.fixture
    def threaded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
        """A module whose import makes forking unsound."""
        text = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
        (tmp_path / "threaded.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return ("threaded",)

    def test_where_a_fork_is_unsound_a_fresh_interpreter_runs_it_and_that_is_said_once(
        self, run: Run, threaded: tuple[str, ...], caplog: pytest.LogCaptureFixture
    ) -> None:
        with ProcessPool() as own:
            ends = [run(lambda: "threaded" in sys.modules, pool=own, preload=threaded) for _ in range(2)]

        assert [(end.returned, end.start_method) for end in ends] == [(False, "spawn")] * 2
        assert len(caplog.records) == 1
        assert "imports have started 1 thread(s)" in caplog.text

    def test_fork_is_refused_there_with_the_reason(self, run: Run, threaded: tuple[str, ...]) -> None:
        with (
            ProcessPool(start_method="fork") as own,
            pytest.raises(TrialError, match=r"is not sound here: imports have started 1 thread"),
        ):
            run(lambda: 1, pool=own, preload=threaded)

    def test_spawn_imports_nothing_ahead(self, run: Run, threaded: tuple[str, ...]) -> None:
        with ProcessPool(start_method=StartMethod.SPAWN) as own:
            end = run(lambda: "threaded" in sys.modules, pool=own, preload=threaded)

        assert (end.returned, end.start_method) == (False, "spawn")

    def test_a_fresh_interpreter_has_the_environment_logs_and_end_of_any_trial(
        self, run: Run, tmp_path: Path
    ) -> None:
        def work() -> tuple[bool, bool]:
            print("hello")
            started = Path("/proc/self/environ").read_bytes().split(b"\0")
            return b"MALLOC_ARENA_MAX=1" in started, b"PYTORCH_ALLOC_CONF=a" in started

        environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "PYTORCH_ALLOC_CONF": "a"}
        with ProcessPool(start_method="spawn") as own:
            end = run(work, pool=own, environment=environment)
            killed = run(lambda: os.kill(os.getpid(), signal.SIGKILL), pool=own)
            hung = run(lambda: time.sleep(60), pool=own, timeout_seconds=1.0)

        assert end.returned == (True, True)
        assert killed.signal == signal.SIGKILL
        assert hung.timed_out

    def test_an_unknown_one_is_refused_with_the_list(self) -> None:
        with pytest.raises(ConfigError, match="must be one of auto, fork, spawn, got 'thread'"):
            ProcessPool(start_method="thread")


class TestParent:
    def test_classes_of_what_only_trials_import_stay_out_of_the_parent(
        self, run: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "heavy.py").write_text("class OutOfMemory(Exception): pass")

        def work() -> None:
            import heavy  # type: ignore[import-not-found]

            raise heavy.OutOfMemory("tried to allocate 3 GiB")

        with ProcessPool() as own, pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            end = run(work, pool=own, preload=("heavy",))

        assert "heavy" not in sys.modules
        assert str(end.error) == "OutOfMemory: tried to allocate 3 GiB"

    def test_waiting_costs_no_processor_time(self, run: Run) -> None:
        before = time.process_time()
        run(lambda: time.sleep(1.0))

        assert time.process_time() - before < 0.1

    def test_two_trials_at_once_do_not_mix(self, pool: ProcessPool, tmp_path: Path) -> None:
        ends: dict[int, ProcessEnd] = {}

        def one(number: int) -> None:
            folder = tmp_path / str(number)
            folder.mkdir()

            def work() -> int:
                child = subprocess.Popen(["sleep", "60"], start_new_session=True)
                time.sleep(0.2 * number)
                assert child.poll() is None, "another trial's end took this one's child"
                return number

            request = ProcessRequest(function=pickled(work), environment=dict(os.environ), folder=folder)
            ends[number] = pool.run(request)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert {number: (end.returned, end.n_orphans) for number, end in ends.items()} == {
            number: (number, 1) for number in range(4)
        }

    def test_orphans_of_trials_that_end_at_once_are_each_their_own_trials(
        self, pool: ProcessPool, tmp_path: Path
    ) -> None:
        """The template is stopped while both end, so that it learns of both ends in one look."""
        ends: dict[int, ProcessEnd] = {}

        def one(number: int) -> None:
            folder = tmp_path / str(number)
            folder.mkdir()

            def work() -> int:
                for _ in range(number):
                    subprocess.Popen(["sleep", "60"], start_new_session=True)
                (folder / "pid").write_text(str(os.getppid()))
                time.sleep(0.5)
                return os.getpid()

            request = ProcessRequest(function=pickled(work), environment=dict(os.environ), folder=folder)
            ends[number] = pool.run(request)

        threads = [threading.Thread(target=one, args=(number,)) for number in (1, 3)]
        for thread in threads:
            thread.start()
        (template,) = {wait_for_pid(tmp_path / str(number) / "pid") for number in (1, 3)}
        os.kill(template, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(template, signal.SIGCONT)
        for thread in threads:
            thread.join()

        assert {number: end.n_orphans for number, end in ends.items()} == {1: 1, 3: 3}
        assert all(end.survivors == () for end in ends.values())

    def test_a_lease_is_in_force_in_the_trial_and_in_what_it_starts(
        self, run: Run, pool: ProcessPool
    ) -> None:
        core = min(os.sched_getaffinity(0))
        lease = Lease(n_slots=2, cores=(core,))

        def work() -> tuple[Any, ...]:
            ask = "import os; print(sorted(os.sched_getaffinity(0)))"
            started = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
            return os.sched_getaffinity(0), started.stdout.strip(), process.lease()

        for start_method in ("fork", "spawn"):
            with ProcessPool(start_method=start_method) as own:
                end = run(work, pool=own, lease=lease)

            assert end.returned == ({core}, f"[{core}]", lease), start_method
        assert run(process.lease).returned is None

    def test_a_lease_that_cannot_be_had_is_an_error_and_not_ignored(self, run: Run) -> None:
        end = run(lambda: 1, lease=Lease(n_slots=2, cores=(1023,)))

        assert isinstance(end.error, OSError)
        assert not end.has_returned

    def test_an_interrupt_ends_every_trial_in_its_own_thread(self, tmp_path: Path) -> None:
        own = ProcessPool()
        raised: list[BaseException] = []
        pids: list[int] = []

        def one(number: int) -> None:
            folder = tmp_path / str(number)
            folder.mkdir()

            def work() -> None:
                child = subprocess.Popen(["sleep", "60"], start_new_session=True)
                (folder / "pid").write_text(str(child.pid))
                time.sleep(60)

            request = ProcessRequest(function=pickled(work), environment=dict(os.environ), folder=folder)
            try:
                own.run(request)
            except KeyboardInterrupt as error:
                raised.append(error)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        pids = [wait_for_pid(tmp_path / str(number) / "pid") for number in range(3)]
        began = time.monotonic()
        own.interrupt()
        for thread in threads:
            thread.join()

        assert len(raised) == 3
        assert not any(map(is_running, pids))
        assert time.monotonic() - began < 5
        with pytest.raises(KeyboardInterrupt):
            own.run(ProcessRequest(function=pickled(int), environment=dict(os.environ), folder=tmp_path))
        own.close()
        request = ProcessRequest(function=pickled(int), environment=dict(os.environ), folder=tmp_path)
        assert own.run(request).returned == 0
        own.close()

    def test_an_interrupt_does_not_wait_for_a_templates_imports(self, tmp_path: Path) -> None:
        (tmp_path / "endless.py").write_text("import time\nwhile True: time.sleep(0.01)")
        raised: list[BaseException] = []
        with pytest.MonkeyPatch.context() as patch, ProcessPool() as own:
            patch.syspath_prepend(tmp_path)
            request = ProcessRequest(
                function=pickled(int), environment=dict(os.environ), folder=tmp_path, preload=("endless",)
            )

            def one() -> None:
                try:
                    own.run(request)
                except KeyboardInterrupt as error:
                    raised.append(error)

            threads = [threading.Thread(target=one) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(0.5)
            own.interrupt()
            for thread in threads:
                thread.join(5.0)

        assert len(raised) == 2

    def test_a_template_that_somebody_counts_on_is_not_closed_for_another(self, tmp_path: Path) -> None:
        """With room for one, three environments at once, each for several trials."""
        ends: list[ProcessEnd] = []

        def one(number: int) -> None:
            for turn in range(3):
                folder = tmp_path / f"{number}-{turn}"
                folder.mkdir()
                environment = {**os.environ, "WHICH": str(number)}
                work = pickled(lambda: os.environ["WHICH"])
                ends.append(own.run(ProcessRequest(function=work, environment=environment, folder=folder)))

        with ProcessPool(max_templates=1) as own:
            threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        assert sorted(str(end.returned) for end in ends) == ["0"] * 3 + ["1"] * 3 + ["2"] * 3

    def test_fifty_trials_leave_no_descriptor_and_no_process(self, run: Run) -> None:
        template = run(os.getppid).returned

        def held() -> tuple[int, int, int]:
            processes = Path(f"/proc/{template}/task/{template}/children").read_text().split()
            return (
                len(list(Path("/proc/self/fd").iterdir())),
                len(list(Path(f"/proc/{template}/fd").iterdir())),
                len(processes),
            )

        before = held()
        for number in range(50):
            run([lambda: 1, lambda: sys.exit(1), lambda: os.kill(os.getpid(), 9)][number % 3])

        # The template closes its end of a trial's pipe just after it has told of the end.
        assert wait_until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))
