"""The isolated launcher: Hydra's own conformance suites, then what Hydra does not ask of a launcher."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from ends import ends_of
from hydra import version
from hydra._internal.callbacks import Callbacks
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.test_utils.launcher_common_tests import IntegrationTestSuite, LauncherTestSuite
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig

from memsweep.errors import ConfigError
from memsweep.machine import n_cores
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Phase, TimedOut
from memsweep.record.rivals import Rivals
from memsweep.record.study import Direction
from memsweep.record.trial import TrialRecord


@pytest.mark.parametrize(("launcher_name", "overrides"), [("isolated", [])])
class TestIsolatedLauncher(LauncherTestSuite):
    """Hydra's suite, unmodified."""


@pytest.mark.slow
@pytest.mark.parametrize(("task_launcher_cfg", "extra_flags"), [({}, ["-m", "hydra/launcher=isolated"])])
class TestIsolatedLauncherIntegration(IntegrationTestSuite):
    """Hydra's suite, unmodified."""


Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path, hydra_restore_singletons: None) -> Iterator[Make]:
    """Make a launcher for an app whose config has `x`, with sweep folder `tmp_path`/sweep."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("x: 1\n")
    launchers = []

    def make(task: Callable[[DictConfig], Any], *overrides: str) -> Any:
        version.setbase("1.3")
        hydra = Hydra.create_main_hydra2("app", create_config_search_path(str(tmp_path / "conf")))
        typed = ["hydra/launcher=isolated", f"hydra.sweep.dir={tmp_path}/sweep", *overrides]
        config = hydra.compose_config("config", typed, RunMode.MULTIRUN, with_log_configuration=False)
        launcher: Any = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(config)),
            task_function=task,
            config=config,
        )
        launchers.append(launcher)
        return launcher

    yield make
    for launcher in launchers:
        launcher.close()


def launch_one(launcher: Any, *overrides: str, number: int = 0) -> JobReturn:
    jobs: Sequence[JobReturn] = launcher.launch([list(overrides)], number)
    return jobs[0]


def failure(job: JobReturn) -> Any:
    assert job.status is JobStatus.FAILED
    return job._return_value


def test_a_job_sees_its_number_its_folder_and_its_config(make: Make, tmp_path: Path) -> None:
    def task(config: DictConfig) -> tuple[int, int, str]:
        hydra = HydraConfig.get()
        return config.x, hydra.job.num, hydra.runtime.output_dir

    job = launch_one(make(task), "x=3", number=7)

    assert job.return_value == (3, 7, str(tmp_path / "sweep" / "7"))
    assert (tmp_path / "sweep" / "7" / ".hydra" / "overrides.yaml").read_text() == "- x=3\n"


def test_what_a_job_prints_is_in_its_folder(make: Make, tmp_path: Path) -> None:
    launch_one(make(lambda _: print("hello")))

    assert (tmp_path / "sweep" / "0" / "stdout.log").read_text() == "hello\n"


def test_jobs_one_launch_at_a_time_come_from_one_template(make: Make) -> None:
    launcher = make(lambda _: os.getppid())
    pids = {launch_one(launcher, number=number).return_value for number in range(3)}

    assert len(pids) == 1


def test_jobs_leave_nothing_to_each_other(make: Make) -> None:
    def task(config: DictConfig) -> Any:
        seen = os.environ.get("LEFT"), getattr(sys, "left", None)
        os.environ["LEFT"] = sys.left = "something"  # type: ignore[attr-defined]
        return seen

    jobs = make(task).launch([["x=1"], ["x=2"]], 0)

    assert [job.return_value for job in jobs] == [(None, None), (None, None)]


def test_preparing_starts_the_template_of_the_first_job(make: Make) -> None:
    launcher = make(lambda _: os.getppid(), "x=1,2")
    launcher.prepare()
    (template,) = launcher._jobs._pool._templates.values()

    assert launch_one(launcher, "x=1").return_value == template.pid


def test_preparing_what_cannot_be_composed_is_left_to_the_launch(make: Make) -> None:
    launcher = make(lambda _: 1)
    launcher.prepare(["no_such_key=1"])

    assert "no_such_key" in failure(launch_one(launcher, "no_such_key=1")).outcome.reason


def test_variables_of_hydra_and_of_the_launcher_are_there_from_the_start(make: Make) -> None:
    def task(_: DictConfig) -> list[bool]:
        started = Path("/proc/self/environ").read_bytes().split(b"\0")
        return [b"FROM_HYDRA=1" in started, b"FROM_LAUNCHER=2" in started]

    launcher = make(task, "+hydra.job.env_set.FROM_HYDRA=1", "+hydra.launcher.environment.FROM_LAUNCHER=2")

    assert launch_one(launcher).return_value == [True, True]


def test_phases_are_passed_on(make: Make) -> None:
    def task(_: DictConfig) -> None:
        from memsweep.trial.process import report_phase

        report_phase(Phase.BUILD)

    launcher, heard = make(task), []
    launcher.on_phase = lambda number, phase: heard.append((number, phase))
    launch_one(launcher, number=7)

    assert heard == [(7, Phase.BUILD)]
    assert {"compose", "start", "build", "total"} <= launcher.seconds.keys()


def test_a_trial_learns_which_set_ups_are_known(make: Make) -> None:
    def task(_: DictConfig) -> dict[str, int]:
        from memsweep.trial.process import known_set_ups

        return known_set_ups()

    launcher = make(task)
    launcher.known = {"96e34f6b5ee76c05": 3}

    assert launch_one(launcher).return_value == {"96e34f6b5ee76c05": 3}


def test_a_trial_learns_its_rivals_by_its_number(make: Make) -> None:
    def task(_: DictConfig) -> Any:
        from memsweep.trial.process import known_rivals

        return known_rivals()

    own = Rivals(objectives={"speed": Direction.MAXIMIZE})
    launcher = make(task)
    launcher.rivals = {0: own, 1: None}

    assert launch_one(launcher).return_value == own


two_cores = pytest.mark.skipif(n_cores() < 2, reason="needs a core for each of two slots")


def share(_: DictConfig) -> tuple[list[int], dict[str, str | None], float]:
    """Return what a job has of the machine, and when it began."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
    began = time.monotonic()
    time.sleep(1.0)
    return sorted(os.sched_getaffinity(0)), {name: os.environ.get(name) for name in names}, began


class TestSlots:
    @two_cores
    def test_jobs_side_by_side_have_cores_of_their_own(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            monkeypatch.delenv(name, raising=False)
        jobs = make(share, "hydra.launcher.slots=2").launch([["x=1"], ["x=2"]], 0)
        (cores, variables, began), (others, other_variables, other_began) = (j.return_value for j in jobs)

        assert abs(began - other_began) < 1.0
        assert len(cores) == len(others) == n_cores() // 2
        assert not set(cores) & set(others)
        assert variables == other_variables
        assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == str(len(cores))

    @two_cores
    def test_jobs_side_by_side_see_devices_of_their_own(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-a")
        jobs = make(share, "hydra.launcher.slots=2").launch([["x=1"], ["x=2"], ["x=3"]], 0)
        seen = [job.return_value[1]["CUDA_VISIBLE_DEVICES"] for job in jobs]

        assert set(seen[:2]) == {"3", "GPU-a"}
        assert seen[2] in ("3", "GPU-a")

    @two_cores
    def test_a_device_that_the_launcher_is_given_is_shared_out_and_not_lost(self, make: Make) -> None:
        given = "+hydra.launcher.environment.CUDA_VISIBLE_DEVICES='1,2'"
        jobs = make(share, "hydra.launcher.slots=2", given).launch([["x=1"], ["x=2"]], 0)

        assert {job.return_value[1]["CUDA_VISIBLE_DEVICES"] for job in jobs} == {"1", "2"}

    def test_alone_a_job_has_all_that_there_is(self, make: Make) -> None:
        cores, variables, _ = launch_one(make(share)).return_value

        assert cores == sorted(os.sched_getaffinity(0))
        assert variables["OMP_NUM_THREADS"] == os.environ.get("OMP_NUM_THREADS")

    @pytest.mark.parametrize(
        ("slots", "message"),
        [("4096", "needs a core for each trial"), ("0", "hydra.launcher.slots must be at least 1, got 0")],
    )
    def test_slots_that_cannot_be_had_are_refused_before_anything_starts(
        self, make: Make, slots: str, message: str
    ) -> None:
        launcher = make(lambda _: 1, f"hydra.launcher.slots={slots}")

        with pytest.raises(ConfigError, match=message):
            launcher.check(["x=1"])
        with pytest.raises(ConfigError, match=message):
            launcher.prepare(["x=1"])
        with pytest.raises(ConfigError, match=message):
            launcher.launch([["x=1"]], 0)

    @two_cores
    def test_a_check_of_slots_that_can_be_had_starts_nothing(self, make: Make) -> None:
        launcher = make(lambda _: 1, "hydra.launcher.slots=2")
        launcher.check(["x=1"])

        assert launcher._jobs is None

    @two_cores
    def test_more_slots_than_devices_are_refused(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

        with pytest.raises(ConfigError, match="needs a device for each trial, and 1 can be seen: 0"):
            make(lambda _: 1, "hydra.launcher.slots=2").prepare(["x=1"])

    @two_cores
    def test_a_job_that_fails_leaves_its_slot_to_others(self, make: Make) -> None:
        def task(config: DictConfig) -> int:
            if config.x % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return int(config.x)

        jobs = make(task, "hydra.launcher.slots=2").launch([[f"x={x}"] for x in range(6)], 0)

        assert [job.status for job in jobs] == [JobStatus.COMPLETED, JobStatus.FAILED] * 3
        assert [job.return_value for job in jobs[::2]] == [0, 2, 4]


APP = """
    import os, signal, subprocess, sys, time
    import hydra

    @hydra.main(version_base="1.3", config_path=None, config_name=None)
    def main(config):
        subprocess.Popen(["sleep", config.sleep], start_new_session=True)  # an orphan of every trial
        if config.end == "killed": os.kill(os.getpid(), signal.SIGKILL)
        if config.end == "raises": raise RuntimeError("no")
        if config.end == "hangs": time.sleep(100)
        if config.end == "exits": sys.exit(3)
        if config.end == "starves":
            import resource
            resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20))
            bytearray(1 << 30)
        return {"cost": 1.0}

    main()
"""


def test_a_sweep_survives_every_end_and_leaves_no_process(tmp_path: Path) -> None:
    expected = {
        "fine": "measured",
        "killed": "crashed",
        "raises": "crashed",
        "hangs": "timed_out",
        "exits": "crashed",
        "starves": "out_of_memory",
    }

    assert ends_of(tmp_path, APP, expected) == expected


class TestFailures:
    def test_an_exception_is_the_jobs_own_with_its_traceback_in_the_log(
        self, make: Make, tmp_path: Path
    ) -> None:
        def task(_: DictConfig) -> None:
            raise KeyError("adapter")

        job = launch_one(make(task))

        assert isinstance(failure(job), KeyError)
        assert failure(job).outcome.reason == "KeyError: 'adapter'"
        assert "in task" in (tmp_path / "sweep" / "0" / "stderr.log").read_text()
        with pytest.raises(KeyError, match="adapter"):
            job.return_value  # noqa: B018, reading it raises

    @pytest.mark.parametrize(
        ("leave", "reason"),
        [
            (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"),
            (lambda: os.kill(os.getpid(), signal.SIGSEGV), "ended by SIGSEGV: segmentation fault"),
            (lambda: sys.exit(3), "exited with code 3"),
            (lambda: os._exit(3), "exited with code 3"),
            (lambda: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(60), "forked from was ended"),
        ],
        ids=["SIGKILL", "SIGSEGV", "sys.exit", "os._exit", "template killed"],
    )
    def test_a_process_that_cannot_answer_is_a_failed_job_and_the_next_one_runs(
        self, make: Make, tmp_path: Path, leave: Callable[[], None], reason: str
    ) -> None:
        def task(config: DictConfig) -> str:
            if config.x == 1:
                leave()
            return "ran"

        lost, following = make(task).launch([["x=1"], ["x=2"]], 0)

        outcome = failure(lost).outcome
        assert isinstance(outcome, Crashed)
        assert reason in outcome.reason
        assert TrialRecord.read(TrialFolder(tmp_path / "sweep" / "0")).outcome == outcome
        assert (lost.cfg, lost.overrides) == ({"x": 1}, ["x=1"])
        assert lost.hydra_cfg.hydra.runtime.output_dir == str(tmp_path / "sweep" / "0")
        assert following.return_value == "ran"

    def test_a_job_that_takes_too_long_is_a_failed_job(self, make: Make) -> None:
        job = launch_one(make(lambda _: time.sleep(60), "hydra.launcher.timeout_seconds=0.5"))

        assert failure(job).outcome == TimedOut(limit_seconds=0.5, phase=Phase.START)

    def test_a_config_that_cannot_be_composed_is_a_failed_job(self, make: Make) -> None:
        wrong, right = make(lambda config: config.x).launch([["x=1", "y=2"], ["x=2"]], 0)

        assert "it could not begin: Could not override 'y'" in failure(wrong).outcome.reason
        assert right.return_value == 2

    def test_a_folder_that_cannot_be_made_is_a_failed_job(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "sweep").write_text("a file where the sweep's folder should be")

        assert "it could not begin" in failure(launch_one(make(lambda _: 1))).outcome.reason

    def test_where_a_fork_is_unsound_and_asked_for_the_job_fails_with_the_reason(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
        (tmp_path / "threaded.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        launcher = make(lambda _: 1, "hydra.launcher.start_method=fork", "hydra.launcher.preload=[threaded]")

        assert "start_method=fork is not sound here" in failure(launch_one(launcher)).outcome.reason

    def test_an_outcome_of_an_earlier_run_is_not_taken_for_this_one(self, make: Make, tmp_path: Path) -> None:
        folder = TrialFolder(tmp_path / "sweep" / "0")
        TrialRecord(outcome=TimedOut(limit_seconds=1.0, phase=Phase.BUILD)).write(folder)
        job = launch_one(make(lambda _: os._exit(3)))

        assert isinstance(failure(job).outcome, Crashed)

    def test_a_misspelt_setting_of_the_launcher_is_refused(self, make: Make) -> None:
        with pytest.raises(Exception, match="timeout_secs"):
            make(lambda _: 1, "hydra.launcher.timeout_secs=1")
