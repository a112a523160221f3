"""The real client, online: against a server on loopback that works, and against those that do not."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.record.trial import read_results
from memsweep.tracking.log import StudyLogger
from synthetic import study_of, trials_of_every_kind
from wandb_stub import KEY, Stub, StubRun, wandb_stub

N_TRIALS = 8

pytestmark = pytest.mark.slow


def make(base: Path) -> StudyFolder:
    """Write the folder of a finished study under `base`, one trial with what its trainer logged."""
    folder = StudyFolder(base / "outputs" / "example")
    results = trials_of_every_kind(N_TRIALS)
    study_of(N_TRIALS).write(folder)
    folder.results.write_text("".join(json.dumps(r.to_mapping()) + "\n" for r in results), encoding="utf-8")
    folder.trial(0).path.mkdir(parents=True)
    lines = [{"step": step, "loss": 2.0 / step} for step in (1, 2)]
    folder.trial(0).log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    folder.report.write_text("<p>the report</p>", encoding="utf-8")
    return folder


def tell(
    folder: StudyFolder, mode: str, limit_seconds: float = 30.0, pause: Callable[..., None] | None = None
) -> StudyLogger:
    """Tell W&B of the study as it is in its folder; `pause` is called before the last trial."""
    results = read_results(folder.results)
    logger = StudyLogger(folder, {"mode": mode, "project": "tests"}, limit_seconds)
    for result in results:
        if pause is not None and result.number == N_TRIALS - 1:
            pause(logger)
        logger.trial(result)
    logger.finish(results, 0)
    return logger


def synced(logger: StudyLogger, stub: Stub) -> None:
    """Type the command that uploads what is on disk."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **stub.environment, "PATH": path}
    done = subprocess.run(
        logger.command, shell=True, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let nothing of whoever runs the tests lead anywhere."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home-of-somebody"))


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stub, StudyFolder]]:
    """A server, and the folder of a study that was logged there."""
    base = tmp_path_factory.mktemp("online") / "home-of-somebody"
    folder = make(base)
    with wandb_stub() as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(base))
        for name, value in stub.environment.items():
            patch.setenv(name, value)
        logger = tell(folder, "online")
        assert logger.failure is None
        assert logger.place is not None
        assert logger.place.startswith(stub.url)
        yield stub, folder


def facts(run: StubRun, folder: StudyFolder) -> dict[str, object]:
    """Return what a test compares of a run."""
    own = {key: value for key, value in run.summary.items() if not key.startswith("_") and "/" in key}
    return {
        "group": run.facts.get("groupName"),
        "job": run.facts.get("jobType"),
        "tags": run.facts.get("tags"),
        "exit": run.exit_code,
        "config": run.config["memsweep"]["value"],
        "losses": [row["train/loss"] for row in run.rows if "train/loss" in row],
        "volumes": [row["front/hypervolume"] for row in run.rows if "front/hypervolume" in row],
        "summary": own,
    }


def test_everything_arrives_online(online: tuple[Stub, StudyFolder]) -> None:
    stub, folder = online
    findings = find(read_results(folder.results), Study.read(folder))
    first, study = stub.run("-0000"), stub.run("-study")

    assert stub.unknown == []
    assert len(stub.runs) == N_TRIALS + 1
    assert facts(first, folder)["losses"] == [2.0, 1.0]
    assert first.facts["groupName"] == "example"
    assert first.summary["objective/tokens_per_second"] == findings.results[0].objectives["tokens_per_second"]
    assert stub.run("-0003").exit_code == 3
    assert study.exit_code == 0
    assert study.summary["front/hypervolume"] == pytest.approx(findings.hypervolume())
    assert study.summary["front"]["nrows"] == len(findings.front)
    assert "scatter" in study.config["_wandb"]["value"]["visualize"]


def test_tables_pictures_and_the_artifact_arrive_online(online: tuple[Stub, StudyFolder]) -> None:
    stub, _ = online
    artifacts = {artifact.facts["artifactTypeName"]: artifact for artifact in stub.artifacts}

    assert all(artifact.is_committed for artifact in stub.artifacts)
    assert b"the report" in artifacts["pareto-front"].files["report.html"]
    assert artifacts["pareto-front"].files["results.jsonl"].count(b"\n") == N_TRIALS
    media = {name.split("_")[0] for name in stub.run("-study").files if name.startswith("media/")}
    assert {"media/table/front", "media/table/trials", "media/plotly/parallel"} <= media


def test_what_a_trial_became_at_the_end_is_told_to_its_run(online: tuple[Stub, StudyFolder]) -> None:
    stub, folder = online
    members = {member.number for member in find(read_results(folder.results), Study.read(folder)).front}

    for number in range(N_TRIALS):
        assert stub.run(f"-{number:04d}").summary["pareto/on_front"] == (number in members)
    assert stub.operations.count("RunResumeStatus") > N_TRIALS + 1


def test_no_home_host_or_key_is_sent(online: tuple[Stub, StudyFolder]) -> None:
    stub, _ = online
    sent = b"\n".join(stub.bodies)

    assert b"objective/tokens_per_second" in sent
    for unwanted in ("home-of-somebody", f'"{os.uname().nodename}"', "hostname", KEY):
        assert unwanted.encode() not in sent, unwanted


def test_a_study_that_was_kept_on_disk_is_the_same_once_it_is_synced(
    online: tuple[Stub, StudyFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = make(tmp_path)
    logger = tell(folder, "offline")
    assert logger.place == "wandb sync outputs/example/wandb"

    with wandb_stub() as stub:
        synced(logger, stub)

        assert stub.unknown == []
        assert set(stub.runs) == set(online[0].runs)
        for run_id, run in stub.runs.items():
            assert facts(run, folder) == facts(online[0].runs[run_id], folder), run_id
        assert all(artifact.is_committed for artifact in stub.artifacts)


@pytest.fixture
def dead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make the server unusable in the way that is asked for, and say what a warning is to say."""
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    with socket.create_server(("127.0.0.1", 0)) as silent, wandb_stub() as stub:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        match request.param:
            case "refuses":
                silent.close()
                monkeypatch.setenv("WANDB_BASE_URL", url)
                yield "refused"
            case "is silent":
                monkeypatch.setenv("WANDB_BASE_URL", url)
                yield "does not answer within"
            case "wants a key":
                monkeypatch.delenv("WANDB_API_KEY")
                monkeypatch.setenv("WANDB_BASE_URL", stub.url)
                yield "No API key"


@pytest.mark.parametrize("dead", ["refuses", "is silent", "wants a key"], indirect=True)
def test_a_server_that_is_of_no_use_is_one_warning_and_the_study_is_on_disk(
    dead: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make(tmp_path)
    started = time.monotonic()

    logger = tell(folder, "online")

    assert time.monotonic() - started < 25
    assert len(warnings(caplog)) == 1
    assert dead in warnings(caplog)[0]
    assert logger.command in warnings(caplog)[0]
    assert logger.place == logger.command
    assert len(list(folder.wandb.glob("offline-run-*-study"))) == 1
    assert len({path.stem for path in folder.wandb.glob("offline-run-*/run-*.wandb")}) == N_TRIALS + 1


def test_a_server_that_stops_answering_costs_its_limit_once_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder, limit_seconds = make(tmp_path), 6.0
    with wandb_stub() as stub:
        for name, value in stub.environment.items():
            monkeypatch.setenv(name, value)

        def stop_answering(logger: StudyLogger) -> None:
            deadline = time.monotonic() + 60
            while logger._n_answered < N_TRIALS and time.monotonic() < deadline:
                time.sleep(0.1)
            stub.is_silent.set()

        started = time.monotonic()
        logger = tell(folder, "online", limit_seconds, stop_answering)
        took = time.monotonic() - started
        stub.is_silent.clear()
        synced(logger, stub)

    assert took < 60
    assert len(warnings(caplog)) == 1
    assert logger.command in warnings(caplog)[0]
    assert logger.failure is None
    assert len(stub.runs) == N_TRIALS + 1
    assert stub.run("-study").summary["trials"]["nrows"] == N_TRIALS
    volumes = {row["trial/number"] for row in stub.run("-study").rows if "front/hypervolume" in row}
    assert volumes == set(range(N_TRIALS))
