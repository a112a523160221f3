"""W&B as the study sees it, with a wandb that fails in every way it can."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.trial import TrialResult
from memsweep.tracking.log import StudyLogger
from wandb_stub import wandb_stub

BROKEN_WANDB = '''
"""A wandb that does nothing, and at one point what $BROKEN says."""

import os
import signal
import time


def _at(point):
    how, _, where = os.environ.get("BROKEN", "").partition(":")
    if where != point:
        return
    if how == "hang":
        time.sleep(600)
    if how == "exit":
        os._exit(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError(f"broken at {point}")


_at("import")


class Settings:
    model_fields = {"silent": None}

    def __init__(self, **settings):
        assert set(settings) <= set(self.model_fields)
        _at("settings")


class Run:
    url = "http://somewhere/run"

    def __init__(self):
        self.summary = self.config = self

    def update(self, values, allow_val_change=False):
        _at("config" if allow_val_change else "summary")

    def define_metric(self, name, **facts):
        _at("define_metric")

    def log(self, row):
        _at("log")

    def log_artifact(self, artifact):
        _at("log_artifact")

    def finish(self, exit_code):
        _at("finish")


def init(**facts):
    _at("init")
    _at(f"init of {facts['job_type']}")
    if facts["mode"] == "online":
        _at("online")
    return Run()


def Table(columns, data):
    _at("table")


class plot:
    @staticmethod
    def scatter(table, x, y, title):
        _at("scatter")

    @staticmethod
    def line(table, x, y, title):
        _at("line")


class Artifact:
    def __init__(self, name, type):
        _at("artifact")

    def add_dir(self, folder, skip_cache):
        _at("add_dir")


class setup:
    def __init__(self):
        self.settings = self
        self.base_url = os.environ["SERVER"]


def teardown():
    _at("teardown")
'''

POINTS = [
    "import",
    *(pytest.param(point, marks=pytest.mark.slow) for point in ("init", "init of trial", "log", "scatter")),
    "summary",
    *(pytest.param(point, marks=pytest.mark.slow) for point in ("config", "add_dir", "finish")),
]


@pytest.fixture
def study_folder(make_study: Callable[..., StudyFolder]) -> StudyFolder:
    return make_study()


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that says how the wandb of the process is to be broken."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "wandb.py").write_text(BROKEN_WANDB, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    return lambda how: monkeypatch.setenv("BROKEN", how)


def log_study(
    folder: StudyFolder, results: tuple[TrialResult, ...], mode: str = "offline", limit_seconds: float = 30
) -> StudyLogger:
    logger = StudyLogger(folder, {"mode": mode, "project": "tests"}, limit_seconds)
    for result in results:
        logger.trial(result)
    logger.finish(results, 0)
    return logger


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_wandb_that_works_gives_no_warning(
    study_folder: StudyFolder,
    results: tuple[TrialResult, ...],
    broken: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken("")

    logger = log_study(study_folder, results)

    assert warnings(caplog) == []
    assert logger.failure is None
    assert logger.location == study_folder.wandb


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that answers, which the broken wandb takes for its own."""
    with wandb_stub() as stub:
        monkeypatch.setenv("SERVER", stub.url)
        yield stub.url


@pytest.mark.parametrize("point", POINTS)
def test_an_exception_anywhere_is_one_warning(
    point: str,
    study_folder: StudyFolder,
    results: tuple[TrialResult, ...],
    broken: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken(f"raise:{point}")

    logger = log_study(study_folder, results)

    assert len(warnings(caplog)) == 1
    assert f"broken at {point}" in warnings(caplog)[0]
    assert logger.location is None


@pytest.mark.slow
@pytest.mark.parametrize("point", ["import", "finish"])
def test_a_hang_anywhere_is_one_warning_and_a_bounded_wait(
    point: str,
    study_folder: StudyFolder,
    results: tuple[TrialResult, ...],
    broken: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken(f"hang:{point}")

    started = time.monotonic()
    log_study(study_folder, results, limit_seconds=2)

    assert time.monotonic() - started < 20
    assert len(warnings(caplog)) == 1
    assert "did nothing for 2 s" in warnings(caplog)[0]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "exit"])
def test_a_process_that_vanishes_is_one_warning(
    how: str,
    study_folder: StudyFolder,
    results: tuple[TrialResult, ...],
    broken: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken(f"{how}:summary")

    log_study(study_folder, results)

    assert len(warnings(caplog)) == 1


def test_telling_of_a_trial_never_waits_for_wandb(
    study_folder: StudyFolder, results: tuple[TrialResult, ...], broken: Callable[[str], None]
) -> None:
    broken("hang:import")
    logger = StudyLogger(study_folder, {"mode": "offline", "project": "tests"}, limit_seconds=1)

    started = time.monotonic()
    for _ in range(40):  # more than a pipe holds
        for result in results:
            logger.trial(result)

    assert time.monotonic() - started < 2
    logger.finish(results)


def test_online_that_does_not_work_becomes_offline_with_one_warning(
    study_folder: StudyFolder,
    results: tuple[TrialResult, ...],
    broken: Callable[[str], None],
    server: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken("raise:online")

    logger = log_study(study_folder, results, mode="online")

    assert len(warnings(caplog)) == 1
    assert "broken at online" in warnings(caplog)[0]
    assert f"cd {study_folder.path} && wandb sync wandb" in warnings(caplog)[0]
    assert logger.location == study_folder.wandb
    assert logger.place == f"cd {study_folder.path} && wandb sync wandb"


def test_online_that_works_says_where_the_runs_are(
    study_folder: StudyFolder, results: tuple[TrialResult, ...], broken: Callable[[str], None], server: str
) -> None:
    broken("")

    assert log_study(study_folder, results, mode="online").place == "http://somewhere/run"


def test_disabled_starts_nothing(study_folder: StudyFolder, results: tuple[TrialResult, ...]) -> None:
    logger = log_study(study_folder, results, mode="disabled")

    assert logger.location is None
    assert not study_folder.wandb.exists()


def test_an_unknown_mode_lists_those_there_are(study_folder: StudyFolder) -> None:
    with pytest.raises(ConfigError, match="offline, online, disabled, got 'offlin'"):
        StudyLogger(study_folder, {"mode": "offlin"})


def test_the_environment_of_the_study_stays_as_it_was(
    study_folder: StudyFolder, results: tuple[TrialResult, ...], broken: Callable[[str], None]
) -> None:
    broken("")
    before = dict(os.environ)

    log_study(study_folder, results)

    assert dict(os.environ) == before


def test_a_project_that_wandb_does_not_take_is_refused_with_one_that_it_does(
    study_folder: StudyFolder,
) -> None:
    with pytest.raises(ConfigError, match=r"got 'a/b:c': type tracking\.project=a-b-c") as refused:
        StudyLogger(study_folder, {"mode": "offlin", "project": "a/b:c"})

    assert "tracking.mode must be one of" in str(refused.value)
