"""What is really in W&B's files, read back by its own reader."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Crashed, Measured, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult, read_results
from memsweep.tracking.content import OWN
from memsweep.tracking.log import StudyLogger
from memsweep.tracking.logged import Logged
from synthetic import study_of, trials_of_every_kind

WANDB = Path(sys.executable).with_name("wandb")
SECRET = "hf_abcdefghijklmnop1"
HOME, HOST = "home-of-somebody", "gpu-box-7"

pytestmark = pytest.mark.slow


def logs(folder: StudyFolder, run: str) -> list[Path]:
    """Return the logs of the run whose id ends in `run`, in the order they were opened."""
    found = folder.wandb.glob(f"offline-run-*-{run}*/run-*-{run}.wandb")
    return sorted(found, key=lambda file: file.stat().st_mtime)


@cache
def inspected(log: Path) -> list[dict[str, Any]]:
    read = subprocess.run(
        [WANDB, "leet", "inspect", "--json", log], capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in read.stdout.splitlines()]


def records(folder: StudyFolder, run: str) -> list[dict[str, Any]]:
    """Return the records of the run whose id ends in `run`, of each time that it was open."""
    return [record for log in logs(folder, run) for record in inspected(log)]


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary as the last update of each key left it."""
    merged: dict[str, Any] = {}
    for record in found:
        merged |= record.get("summary", {}).get("update", {})
    return merged


def rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record["history"]["item"] for record in found if "history" in record]


def exit_code(found: list[dict[str, Any]]) -> int:
    code: int = [record["exit"] for record in found if "exit" in record][-1]["exit_code"]
    return code


def write_trial(folder: StudyFolder, number: int, losses: Sequence[float]) -> None:
    """Write what a trial leaves in its folder: a config with a secret, and the log of its trainer."""
    trial = folder.trial(number)
    trial.path.mkdir(parents=True)
    trial.config.write_text(
        f"model:\n  path: {os.environ['HOME']}/model\nlaunch:\n  environment:\n    HF_TOKEN: {SECRET}\n",
        encoding="utf-8",
    )
    lines = [{"step": step, "loss": loss, "grad_norm": 1.0} for step, loss in enumerate(losses, start=1)]
    trial.log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def as_they_end(results: tuple[TrialResult, ...]) -> tuple[TrialResult, ...]:
    """Return trials as they are at the end: the baseline was measured again, and one crash says where."""
    speeds = [result * results[0].measures["tokens_per_second"] for result in (0.98, 1.04)]
    repeats = [Measured(measures={**results[0].measures, "tokens_per_second": speed}) for speed in speeds]
    middle = median([results[0].measures["tokens_per_second"], *speeds])
    objectives = {**results[0].objectives, "tokens_per_second": middle}
    return dataclasses.replace(results[0], repeats=tuple(repeats), objectives=objectives), *results[1:]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyFolder]:
    """The folder of a study of 24 trials that W&B was told of, by somebody who has secrets."""
    home = tmp_path_factory.mktemp("place") / HOME
    folder = StudyFolder(home / "outputs" / "example")
    with pytest.MonkeyPatch.context() as patch:
        home.mkdir()
        patch.chdir(home)
        patch.setenv("HOME", str(home))
        patch.setenv("HF_TOKEN", SECRET)
        patch.setenv("HOSTNAME", HOST)
        results = list(trials_of_every_kind(24))
        text = f"401 for {SECRET}: no {os.environ['HOME']}/model on {HOST}"
        crash = Crashed(reason=text, phase=Phase.WARM_UP, signal=9)
        results[5] = dataclasses.replace(results[5], outcome=crash)
        overrides = (*results[0].overrides, f"launch.environment.HF_TOKEN={SECRET}")
        results[0] = dataclasses.replace(results[0], overrides=overrides)
        study_of(24, command=f"python train.py -m launch.environment.HF_TOKEN={SECRET}").write(folder)
        ended = as_they_end(tuple(results))
        lines = [json.dumps(result.to_mapping()) + "\n" for result in ended]
        folder.results.write_text("".join(lines), encoding="utf-8")
        folder.front.write_text(f"number,output_dir\n0,{home}/x\n", encoding="utf-8")
        folder.report.write_text(f"<p>{SECRET} {home}/x {HOST}</p>", encoding="utf-8")
        for number in range(24):
            write_trial(folder, number, [2.5, 2.25, 2.0])
        logger = StudyLogger(folder, {"mode": "offline", "project": "tests", "entity": None})
        for result in results:
            logger.trial(result)
        logger.finish(ended, 0)
        assert logger.failure is None
        yield folder


def test_every_trial_has_a_run_of_its_own(logged: StudyFolder) -> None:
    ids = {log.stem for log in logged.wandb.glob("offline-run-*/run-*.wandb")}

    assert len(ids) == 24 + 1


def test_a_measured_trial_is_logged_with_its_figures(logged: StudyFolder) -> None:
    found = records(logged, "0000")
    (result, *_) = read_results(logged.results)

    run = next(record["run"] for record in found if "run" in record)
    assert run["run_group"] == "example"
    assert run["job_type"] == "trial"
    last = summary(found)
    assert last["objective/tokens_per_second"] == result.objectives["tokens_per_second"]
    assert last["constraint/memory_budget"] == result.constraints["memory_budget"]
    assert last["trial/number"] == 0
    assert exit_code(found) == 0


def test_a_config_is_nested_under_one_key_of_ours(logged: StudyFolder) -> None:
    config = next(r["run"]["config"]["update"] for r in records(logged, "0000") if "run" in r)

    assert set(config) == {OWN, "_wandb"}
    assert config[OWN]["choice"]["adapter"] == "baseline"
    assert config[OWN]["composed"]["model"]["path"] == "~/model"


def test_what_the_trainer_logged_is_in_the_trials_run_by_its_step(logged: StudyFolder) -> None:
    found = records(logged, "0001")

    trained = [(row["train/global_step"], row["train/loss"]) for row in rows(found) if "train/loss" in row]
    assert trained == [(1, 2.5), (2, 2.25), (3, 2.0)]
    metrics = json.dumps([record["metric"] for record in found if "metric" in record])
    assert "train/*" in metrics
    assert "train/global_step" in metrics


def test_a_trial_that_was_killed_keeps_what_its_trainer_had_logged(logged: StudyFolder) -> None:
    found = records(logged, "0005")

    assert [row["train/loss"] for row in rows(found)] == [2.5, 2.25, 2.0]
    assert exit_code(found) == 1
    assert summary(found)["trial/outcome"] == "crashed"


def test_a_trial_without_figures_has_none_in_wandb_and_the_exit_code_of_its_outcome(
    logged: StudyFolder,
) -> None:
    found = records(logged, "0003")

    assert not [key for key in summary(found) if key.startswith(("objective/", "measure/", "constraint/"))]
    assert summary(found)["trial/reason"].startswith("device out of memory")
    assert exit_code(found) == 3


def test_a_trial_that_was_measured_again_shows_every_run_and_their_median(logged: StudyFolder) -> None:
    found = records(logged, "0000")
    (result, *_) = read_results(logged.results)

    runs = [row["repeat/tokens_per_second"] for row in rows(found) if "repeat/number" in row]
    assert runs == list(result.values("tokens_per_second"))
    assert summary(found)["objective/tokens_per_second"] == median(runs)
    assert summary(found)["trial/n_runs"] == 3
    assert len([row for row in rows(found) if "train/loss" in row]) == 3


def test_whether_a_trial_is_on_the_front_is_what_the_end_says(logged: StudyFolder) -> None:
    findings = find(read_results(logged.results), Study.read(logged))
    once, again = [], []
    for result in findings.results:
        (again if len(logs(logged, f"{result.number:04d}")) > 1 else once).append(result.number)
    members = {member.number for member in findings.front}

    assert again
    for number in [*again[:2], *once[:1]]:
        found = records(logged, f"{number:04d}")
        assert summary(found)["pareto/on_front"] == (number in members)
    assert (
        not summary(inspected(logs(logged, f"{again[0]:04d}")[0])).items()
        <= summary(records(logged, f"{again[0]:04d}")).items()
    )


def test_the_study_has_hypervolume_front_trials_and_pictures(logged: StudyFolder) -> None:
    found = records(logged, "study")

    study = Study.read(logged)
    findings = find(read_results(logged.results), study)
    last = summary(found)
    assert last["front/size"] == len(findings.front)
    assert last["front/hypervolume"] == pytest.approx(findings.hypervolume())
    assert last["reference/peak_memory_bytes"] == study.reference["peak_memory_bytes"].value
    assert last["front.nrows"] == len(findings.front)
    assert last["trials.nrows"] == 24
    assert last["parallel_coordinates._type"] == "plotly-file"
    assert last["effects._type"] == "plotly-file"
    config = [record["config"]["update"] for record in found if "config" in record]
    for picture in ("scatter", "covered"):
        assert any(f"_wandb.visualize.{picture}" in update for update in config)
    volumes = [row["front/hypervolume"] for row in rows(found) if "front/hypervolume" in row]
    assert len(volumes) == 24 + 1
    assert exit_code(found) == 0


def test_the_front_table_holds_the_front(logged: StudyFolder) -> None:
    files = list(logged.wandb.glob("offline-run-*-study/files/media/table/front_*.table.json"))
    newest = max(files, key=lambda file: int(file.name.split("_")[1]))

    table = json.loads(newest.read_text(encoding="utf-8"))

    findings = find(read_results(logged.results), Study.read(logged))
    assert [row[0] for row in table["data"]] == [result.number for result in findings.front]
    assert len(files) > 2


def test_the_artifact_holds_figures_report_and_the_configs_of_the_front(logged: StudyFolder) -> None:
    artifacts = [r["artifact"] for r in records(logged, "study") if r.get("artifact", {}).get("type")]
    (artifact,) = [artifact for artifact in artifacts if artifact["type"] == "pareto-front"]

    findings = find(read_results(logged.results), Study.read(logged))
    names = {entry["path"] for entry in artifact["manifest"]["contents"]}
    configs = {f"front/{member.number}/config.yaml" for member in findings.front}
    assert names == {"front.csv", "results.jsonl", "study.json", "report.html", *configs}


def test_no_secret_host_or_home_is_in_anything_that_wandb_holds(logged: StudyFolder) -> None:
    files = [file for file in logged.wandb.rglob("*") if file.is_file()]
    ours = {"logs", "process.log"}  # of what went wrong, for whoever sits here
    held = {file: file.read_bytes() for file in files if ours.isdisjoint(file.parts)}

    assert len([file for file in files if file.suffix == ".wandb"]) >= 25
    assert any(b"number,output_dir" in content for content in held.values())  # the artifact's files are there
    for unwanted in (SECRET, HOME, HOST, f'"{os.uname().nodename}"', "hostname"):
        assert [file for file, content in held.items() if unwanted.encode() in content] == []


def test_what_is_said_to_be_logged_is_what_was_logged(logged: StudyFolder) -> None:
    said = Logged.read(logged)
    trials = [records(logged, run) for run in ("0000", "0001", "0003", "0005", "0006")]

    summaries = {key for found in trials for key in summary(found) if key.partition("/")[0] in SUMMARIES}
    history = {key for found in trials for row in rows(found) for key in row if not key.startswith("_")}
    assert summaries <= said.summary
    assert {key for key in said.summary if not key.startswith("trial/")} <= summaries
    assert history == said.history
    study = {key for row in rows(records(logged, "study")) for key in row if not key.startswith("_")}
    assert said.study <= study
    assert {key.partition(".")[0] for key in study} >= {"front", "trials"}
    assert f"{OWN}.choice.adapter" in said.config


SUMMARIES = ("objective", "constraint", "measure", "seconds", "trial", "pareto")


def test_everything_stays_under_the_study(logged: StudyFolder) -> None:
    inside = {path.name for path in logged.wandb.iterdir() if not path.name.startswith("offline-run-")}

    assert inside <= {"cache", "config", "data", "process.log", "logged.json"}


def test_a_study_that_is_killed_leaves_finished_runs_and_a_front(
    make_study: Callable[..., StudyFolder],
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
    found: list[dict[str, Any]] = []
    while not any("exit" in record for record in found) and time.monotonic() < deadline:
        time.sleep(0.5)
        if len(list(folder.wandb.glob("offline-run-*"))) > 8:
            found = [record for log in logs(folder, "study") for record in inspected.__wrapped__(log)]

    assert exit_code(found) == 1
    assert summary(found)["front.nrows"] >= 1
    assert len({log.stem for log in folder.wandb.glob("offline-run-*/run-*.wandb")}) == 9


def test_what_was_logged_is_on_disk_a_moment_later_whoever_is_killed(
    make_study: Callable[..., StudyFolder],
) -> None:
    folder = make_study(4)
    logger = StudyLogger(folder, {"mode": "offline", "project": "tests"})
    for result in read_results(folder.results):
        logger.trial(result)

    deadline = time.monotonic() + 60
    while logger._n_answered < 5 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.5)  # what is logged reaches the disk within a second
    assert logger._process is not None
    os.killpg(logger._process.pid, signal.SIGKILL)
    logger.finish(())

    assert len([row for row in rows(records(folder, "study")) if "front/size" in row]) == 4
    assert exit_code(records(folder, "0000")) == 0


def test_a_study_that_goes_on_keeps_what_it_had_and_logs_no_trial_twice(
    make_study: Callable[..., StudyFolder],
) -> None:
    folder = make_study(8)
    results = read_results(folder.results)
    first = StudyLogger(folder, {"mode": "offline", "project": "tests"})
    for result in results[:5]:
        first.trial(result)
    first.finish(results[:5], 130)
    second = StudyLogger(folder, {"mode": "offline", "project": "tests"})
    second.earlier(results[:5])
    for result in results[5:]:
        second.trial(result)
    second.finish(results, 0)

    findings = find(results, Study.read(folder))
    found = records(folder, "study")
    assert len(logs(folder, "0003")) == 1
    assert len({log.stem for log in folder.wandb.glob("offline-run-*/run-*.wandb")}) == 9
    counts = {row["trial/number"]: row["outcome/measured"] for row in rows(found) if "front/size" in row}
    assert counts == {n: sum(r.outcome.type == "measured" for r in results[: n + 1]) for n in range(8)}
    assert summary(found)["front/hypervolume"] == pytest.approx(findings.hypervolume())
    assert exit_code(found) == 0
