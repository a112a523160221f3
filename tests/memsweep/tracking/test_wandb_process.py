"""What is really in W&B's files, read back by its own reader."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.record.trial import read_results
from memsweep.tracking.log import StudyLogger
from memsweep.tracking.process import _harmless

WANDB = Path(sys.executable).with_name("wandb")

pytestmark = pytest.mark.slow


def records(folder: StudyFolder, run: str) -> list[dict[str, Any]]:
    """Return the records of the run whose id ends in `run`."""
    (file,) = folder.wandb.glob(f"offline-run-*-{run}/run-*.wandb")
    read = subprocess.run(
        [WANDB, "leet", "inspect", "--json", file], capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in read.stdout.splitlines()]


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary as the last update of each key left it."""
    merged: dict[str, Any] = {}
    for record in found:
        merged |= record.get("summary", {}).get("update", {})
    return merged


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """The folder of a study of 24 trials that W&B was told of."""
    from synthetic import study_of, trials_of_every_kind

    folder = StudyFolder(tmp_path_factory.mktemp("outputs") / "example")
    results = trials_of_every_kind(24)
    study_of(24).write(folder)
    folder.results.write_text("".join(json.dumps(r.to_mapping()) + "\n" for r in results), encoding="utf-8")
    config = "model:\n  path: ~/model\nlaunch:\n  environment:\n    HF_TOKEN: hf_abcdefghijklmnop\n"
    folder.trial(0).config.parent.mkdir(parents=True)
    folder.trial(0).config.write_text(config.replace("~", str(Path.home())), encoding="utf-8")
    logger = StudyLogger(folder, {"mode": "offline", "project": "tests", "entity": None})
    for result in results:
        logger.trial(result)
    logger.finish(results, 0)
    assert logger.failure is None
    return folder


def test_every_trial_has_a_run_of_its_own(logged: StudyFolder) -> None:
    assert len(list(logged.wandb.glob("offline-run-*"))) == 24 + 1


def test_a_measured_trial_is_logged_with_its_figures(logged: StudyFolder) -> None:
    found = records(logged, "0000")
    (result, *_) = read_results(logged.results)

    run = next(record["run"] for record in found if "run" in record)
    assert run["run_group"] == "example"
    assert run["job_type"] == "trial"
    assert run["config"]["update"]["memsweep"]["choice"] == dict(result.choice)
    logged_summary = summary(found)
    for name, value in result.objectives.items():
        assert logged_summary[f"objective/{name}"] == value
    memory_bytes = result.objectives["peak_memory_bytes"]
    assert logged_summary["objective/peak_memory_bytes_low"] == pytest.approx(0.99 * memory_bytes)
    assert logged_summary["objective/peak_memory_bytes_high"] == pytest.approx(1.01 * memory_bytes)
    assert "objective/tokens_per_second_low" not in logged_summary
    assert logged_summary["trial/outcome"] == "measured"
    assert next(record["exit"] for record in found if "exit" in record).get("exit_code", 0) == 0


def test_a_trial_without_figures_has_none_in_wandb_and_the_exit_code_of_its_outcome(
    logged: StudyFolder,
) -> None:
    found = records(logged, "0003")

    assert not [key for key in summary(found) if key.startswith(("objective/", "measure/", "constraint/"))]
    assert summary(found)["trial/reason"].startswith("device out of memory")
    assert next(record["exit"] for record in found if "exit" in record)["exit_code"] == 3


def test_the_study_has_hypervolume_front_trials_and_scatter(logged: StudyFolder) -> None:
    found = records(logged, "study")

    study = Study.read(logged)
    findings = find(read_results(logged.results), study)
    last = summary(found)
    assert last["front/size"] == len(findings.front)
    assert last["front/hypervolume"] == pytest.approx(findings.hypervolume())
    assert last["reference/peak_memory_bytes"] == study.reference["peak_memory_bytes"].value
    assert last["front.nrows"] == len(findings.front)
    assert last["trials.nrows"] == 24
    config = [record["config"]["update"] for record in found if "config" in record]
    assert any("_wandb.visualize.scatter" in update for update in config)
    rows = [record["history"]["item"] for record in found if "history" in record]
    volumes = [row["front/hypervolume"] for row in rows if "front/hypervolume" in row]
    assert volumes == sorted(volumes)


def test_the_front_table_holds_the_front(logged: StudyFolder) -> None:
    files = list(logged.wandb.glob("offline-run-*-study/files/media/table/front_*.table.json"))
    newest = max(files, key=lambda file: int(file.name.split("_")[1]))

    table = json.loads(newest.read_text(encoding="utf-8"))

    findings = find(read_results(logged.results), Study.read(logged))
    assert [row[0] for row in table["data"]] == [result.number for result in findings.front]


def test_no_secret_host_or_home_is_logged(logged: StudyFolder) -> None:
    for record in records(logged, "0000"):
        text = json.dumps(record)
        assert "hf_abcdefghijklmnop" not in text
        assert str(Path.home()) + "/" not in text
        assert f'"{os.uname().nodename}"' not in text
        assert "hostname" not in text


def test_everything_stays_under_the_study(logged: StudyFolder) -> None:
    inside = {path.name for path in logged.wandb.iterdir() if not path.name.startswith("offline-run-")}

    assert inside <= {"cache", "config", "data", "process.log", "latest-run"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("HF_TOKEN", "hf_abcdefgh", "(not logged)"),
        ("api_key", "0123456789", "(not logged)"),
        ("completion_tokens", 512, 512),
        ("eos_token", "<|im_end|>", "<|im_end|>"),
        ("path", str(Path.home() / "model"), "~/model"),
    ],
)
def test_keys_are_told_from_settings(key: str, value: object, expected: object) -> None:
    assert _harmless({key: value}) == {key: expected}


def test_a_study_that_is_killed_leaves_finished_runs_and_a_front(
    make_study: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    folder = make_study(8)
    script = textwrap.dedent(
        f"""
        import os, signal, time
        from pathlib import Path
        from memsweep.record.folder import StudyFolder
        from memsweep.record.trial import read_results
        from memsweep.tracking.log import StudyLogger

        folder = StudyFolder(Path({str(folder.path)!r}))
        logger = StudyLogger(folder, {{"mode": "offline", "project": "tests"}})
        for result in read_results(folder.results):
            logger.trial(result)
        time.sleep(0.2)  # the messages have left this process; W&B's has handled few of them
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(list(folder.wandb.glob("offline-run-*"))) == 9:
            found = records(folder, "study")
            if any("exit" in record for record in found):
                break
        time.sleep(0.5)

    assert next(record["exit"] for record in found if "exit" in record)["exit_code"] == 1
    assert summary(found)["front.nrows"] >= 1
