"""Fixtures that several folders use."""

from __future__ import annotations

import copy
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.version import _UNSPECIFIED_ as UNSPECIFIED
from hydra.version import VersionBase

from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.record.trial import TrialRecord, TrialResult
from synthetic import study_of, trials_of_every_kind

pytest_plugins = ["side_by_side"]

_PROVEN: Counter[str] = Counter()
"""Pairs of option and trainer, by what tests of any process have proven of them."""


def pytest_configure() -> None:
    # A shell that starts tests in the background has them, and all that they start, ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    one = "of contract/, try each option, refusal and rule in one trainer instead of in all"
    parser.addoption("--sample", action="store_true", default=False, help=one)
    parser.addoption("--no-sample", action="store_false", dest="sample", help="undo --sample")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _PROVEN.update(str(what) for name, what in report.user_properties if name == "proven")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _PROVEN:
        terminalreporter.write_line(
            f"support matrix: {_PROVEN.total()} pairs of option and trainer: "
            f"{_PROVEN['work']} proven to work, {_PROVEN['refused']} proven refused, "
            f"{_PROVEN['unverifiable']} unverifiable on this machine"
        )


@pytest.fixture(autouse=True, scope="module")
def own_store() -> Iterator[None]:
    """Let no module inherit what another has made known to Hydra: a `config` of ours is in others' way."""
    Plugins.instance()  # its scan stores hydra/sweeper=pareto, once a process: it must not be undone
    store = ConfigStore.instance()
    before = copy.deepcopy(store.repo)
    yield
    store.repo = before


@pytest.fixture(autouse=True)
def own_version_base() -> Iterator[None]:
    """Let no test inherit the `version_base` of another: it decides where jobs run."""
    state, before = VersionBase.instance(), VersionBase.instance().version_base
    state.version_base = UNSPECIFIED
    yield
    state.version_base = before


@pytest.fixture
def study() -> Study:
    """What a study of 24 trials set out to do."""
    return study_of(24)


@pytest.fixture
def results() -> tuple[TrialResult, ...]:
    """24 finished trials with every kind of end among them."""
    return trials_of_every_kind(24)


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., StudyFolder]:
    """A function that writes the folder of a finished study."""

    def make(n_trials: int = 24, **facts: Any) -> StudyFolder:
        folder = StudyFolder(tmp_path / "outputs" / facts.get("name", "example"))
        finished = trials_of_every_kind(n_trials)
        study_of(n_trials, **facts).write(folder)
        lines = [json.dumps(result.to_mapping()) for result in finished]
        folder.results.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for result in finished[:1]:
            record = TrialRecord(outcome=result.outcome, facts={"device": "cpu", "threads": 2})
            record.write(folder.trial(result.number))
        return folder

    return make
