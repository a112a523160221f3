"""`python train.py -m` over ways to share the work among two processes, beside trials of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsweep.ranks.simulated import REMARK
from memsweep.record.folder import StudyFolder, read_json
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialRecord, read_results

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def train(folder: Path, *typed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *typed, "model=tiny", "tracking=none"],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=500,
    )


def test_a_sweep_mixes_ways_to_share_the_work_with_trials_of_one_process(tmp_path: Path) -> None:
    process = train(
        tmp_path,
        "-m",
        "technique/sharding=baseline,ddp,fsdp2",
        "launch=cpu_simulated",
        "hydra.sweeper.n_trials=3",
        "hydra.sweeper.study_name=shared",
        "measure.front_repeats=0",
        "hydra.sweeper.cut_short=false",
        "hydra.sweeper.ladder=off",
    )
    study = StudyFolder(tmp_path / "outputs" / "shared")
    results = {result.choice["sharding"]: result for result in read_results(study.results)}

    assert process.returncode == 0, process.stdout + process.stderr
    assert set(results) == {"baseline", "ddp", "fsdp2"}
    for option, result in results.items():
        assert isinstance(result.outcome, Measured), result.outcome.text
        assert result.unlike == ()
        assert (REMARK in result.remarks) == (option != "baseline")
        launch = read_json(study.trial(result.number).effective)["launch"]
        assert launch["processes"] == (1 if option == "baseline" else 2)
    assert "launch=cpu_simulated" in study.report.read_text(encoding="utf-8")


def test_slots_are_taken_together_by_trials_of_several_processes(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two slots need two cores")
    process = train(
        tmp_path,
        "-m",
        "technique/sharding=baseline,ddp,fsdp2",
        "launch=cpu_simulated",
        "hydra.launcher.slots=2",
        "hydra.sweeper.study_name=slots",
        "measure.front_repeats=0",
        "hydra.sweeper.cut_short=false",
        "hydra.sweeper.ladder=off",
    )
    study = StudyFolder(tmp_path / "outputs" / "slots")
    results = {result.choice["sharding"]: result for result in read_results(study.results)}
    records = {option: TrialRecord.read(study.trial(result.number)) for option, result in results.items()}

    assert process.returncode == 0, process.stdout + process.stderr
    assert set(results) == {"baseline", "ddp", "fsdp2"}
    for result in results.values():
        assert isinstance(result.outcome, Measured), result.outcome.text
        assert result.unlike == ()
    taken = {option: record.facts["lease"] for option, record in records.items()}
    assert len(taken["baseline"]["cores"]) == 1
    assert taken["ddp"]["cores"] == taken["fsdp2"]["cores"]
    assert (taken["ddp"]["n_taken"], len(taken["ddp"]["cores"])) == (2, 2)


def test_work_that_processes_cannot_share_is_refused_before_anything_starts(tmp_path: Path) -> None:
    process = train(
        tmp_path, "technique/sharding=ddp", "technique.sharding.processes=3", "launch=cpu_simulated"
    )

    assert process.returncode == 2
    assert "trainer.batch=4 cannot be shared out to 3 processes" in process.stderr
    assert "Traceback" not in process.stderr


def test_processes_without_a_device_each_are_refused_before_anything_starts(tmp_path: Path) -> None:
    process = train(tmp_path, "technique/sharding=fsdp2", "launch.device=cpu")

    assert process.returncode == 2
    assert "launch=cpu_simulated lets processes on a CPU stand in for them" in process.stderr
    assert "Traceback" not in process.stderr
