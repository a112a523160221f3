"""`python train.py -m` as a person runs it: real trainers, the tiny model, files and exit code at the end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from memsweep.machine import n_cores
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Incompatible
from memsweep.record.trial import TrialRecord, TrialResult, read_results

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

Sweep = Callable[..., tuple[subprocess.CompletedProcess[str], StudyFolder, tuple[TrialResult, ...]]]


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A function that runs a study on the tiny model and returns its process, folder and results."""

    def run(
        *arguments: str, **environment: str
    ) -> tuple[subprocess.CompletedProcess[str], StudyFolder, tuple[TrialResult, ...]]:
        typed = [*arguments, "model=tiny", "measure=quick", "hydra.sweeper.study_name=test"]
        process = subprocess.run(
            [sys.executable, str(ROOT / "train.py"), "-m", *typed],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=800,
        )
        folder = StudyFolder(tmp_path / "outputs" / "test")
        return process, folder, read_results(folder.results) if folder.results.exists() else ()

    return run


def test_all_seven_trainers_are_measured(sweep: Sweep) -> None:
    trainers = ["sft", "dpo", "reward", "kto", "grpo", "rloo", "online_dpo"]

    process, _, results = sweep(f"trainer={','.join(trainers)}", "hydra.sweeper.n_trials=7", "tracking=none")
    measured = {result.parameters["trainer"]: result.measures for result in results if result.objectives}

    assert set(measured) == set(trainers), process.stdout + process.stderr
    assert all(measures["tokens_per_second"] > 0 for measures in measured.values())
    assert all(measures["peak_memory_bytes"] > 0 for measures in measured.values())
    others = [result for result in results if result.parameters["trainer"] != "sft"]
    assert "trainer decides what is trained on" in process.stdout
    assert all(one.unlike and one.unlike[0].startswith("other data than trial 0") for one in others)
    assert [result.parameters["trainer"] for result in results if result.on_front] == ["sft"]


def test_the_front_is_measured_again_and_its_figures_are_medians(sweep: Sweep) -> None:
    process, folder, results = sweep(
        "trainer=sft",
        "technique/micro_batch=baseline,size",
        "measure.front_repeats=2",
        "hydra.sweeper.n_trials=2",
        "tracking=none",
    )
    members = [result for result in results if result.on_front]

    assert process.returncode == 0, process.stderr
    assert members
    for result in members:
        runs = result.values("tokens_per_second")
        assert len(runs) == 3
        assert result.objectives["tokens_per_second"] == sorted(runs)[1]
        assert (folder.trial(result.number).path / "repeats" / "2" / "outcome.json").exists()


def test_a_study_of_twelve_ends_with_a_front_and_measures_nothing_twice(sweep: Sweep) -> None:
    process, folder, results = sweep(
        "trainer=sft",
        "technique/packing=glob(*)",
        "technique/adapter=baseline,lora",
        "technique/truncation=baseline,max_length",
        "hydra.sweeper.n_trials=12",
    )
    own = [result.effective_hash for result in results if result.objectives and result.reused_from is None]

    assert process.returncode == 0, process.stderr
    assert "Pareto front" in process.stdout
    assert "space exhausted" in process.stdout or "ended: 12 trials" in process.stdout
    assert results[0].label == "baseline"
    assert len(set(own)) == len(own)
    assert not any(isinstance(result.outcome, Incompatible) for result in results)
    for path in (folder.report, folder.front, folder.optimization_results, folder.study, folder.storage):
        assert path.stat().st_size > 0
    for result in results:
        trial = folder.trial(result.number)
        assert json.loads(trial.outcome.read_text())["outcome"]["type"] == result.outcome.type
    assert any(folder.wandb.rglob("run-*.wandb"))


def test_a_technique_is_one_folder_of_yaml_and_no_python(sweep: Sweep, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(ROOT / "conf", conf)
    technique = conf / "technique" / "label_smoothing"
    technique.mkdir()
    about = {
        "summary": "Labels as they are.",
        "saves": "nothing",
        "costs": "nothing",
        "source": "trl==1.16.0 trainer/sft_config.py",
        "changes": "nothing",
    }
    soft = {
        **about,
        "summary": "Soften the labels.",
        "changes": "numerics",
        "settings": {"trainer": {"label_smoothing_factor": 0.1}},
    }
    (technique / "baseline.yaml").write_text(yaml.safe_dump(about))
    (technique / "soft.yaml").write_text(yaml.safe_dump(soft))

    page = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "--help"],
        env={**os.environ, "MEMSWEEP_CONF": str(conf)},
        capture_output=True,
        text=True,
    ).stdout
    everything, _, _ = sweep("space=everything", "hydra.sweeper.dry_run=true", MEMSWEEP_CONF=str(conf))
    process, folder, results = sweep(
        "technique/label_smoothing=baseline,soft",
        "hydra.sweeper.n_trials=2",
        "tracking=none",
        MEMSWEEP_CONF=str(conf),
    )

    assert "technique/label_smoothing: baseline, soft" in page
    assert "label_smoothing" in everything.stdout, everything.stdout + everything.stderr
    assert [result.choice["label_smoothing"] for result in results] == ["baseline", "soft"], process.stderr
    assert all(result.objectives for result in results)
    assert json.loads(folder.study.read_text())["parameters"]["technique/label_smoothing"]


@pytest.mark.alone
def test_a_dominated_set_up_is_cut_short_with_the_memory_that_it_takes(sweep: Sweep, tmp_path: Path) -> None:
    arguments = [
        "trainer=sft",
        "model.geometry.num_hidden_layers=2,16",
        "measure.min_passes=6",
        "measure.max_passes=6",
        "measure.max_seconds=600",
        "measure.precision=0.2",
        "hydra.sweeper.n_trials=2",
        "tracking=none",
    ]
    process, folder, results = sweep(*arguments)
    page = folder.report.read_text()
    shutil.rmtree(tmp_path / "outputs")
    _, _, whole = sweep(*arguments, "hydra.sweeper.cut_short=false")

    assert process.returncode == 0, process.stderr
    assert [result.outcome.type for result in results] == ["measured", "cut_short"], process.stdout
    assert [result.outcome.type for result in whole] == ["measured", "measured"]
    assert [result.number for result in results if result.on_front] == [0]
    assert "worse than trial 0 beyond noise" in process.stdout
    assert "worse than trial 0 beyond noise" in page
    peaks = [one[1].measures["peak_memory_bytes"] for one in (results, whole)]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.02)
    assert results[1].seconds["measure"] < whole[1].seconds["measure"]


def test_a_set_up_beyond_a_demand_on_memory_is_not_timed(sweep: Sweep) -> None:
    process, _, results = sweep(
        "trainer=sft",
        "technique/micro_batch=baseline,size",
        "technique/checkpointing=baseline,disabled",
        "+hydra.sweeper.constraints.small={measure: peak_memory_bytes, at_most: 1e6}",
        "hydra.sweeper.n_trials=4",
        "tracking=none",
    )

    assert process.returncode == 1
    assert [result.outcome.type for result in results] == ["measured", *["cut_short"] * 3], process.stdout
    assert all("measure" not in result.seconds for result in results[1:])
    assert all(result.constraints["small"] > 0 for result in results)
    assert "no trial meets small; the nearest misses it by" in process.stderr


@pytest.mark.skipif(n_cores() < 2, reason="needs a core for each of two slots")
def test_trials_side_by_side_have_a_core_each_and_share_one_front(sweep: Sweep) -> None:
    process, folder, results = sweep(
        "technique/adapter=baseline,lora", "hydra.launcher.slots=2", "tracking=none"
    )
    records = [TrialRecord.read(folder.trial(result.number)) for result in results]

    assert process.returncode == 0, process.stdout + process.stderr
    assert "2 trials side by side, each with" in process.stdout
    assert [result.outcome.type for result in results if not result.objectives] == []
    assert not any(result.unlike for result in results)
    assert {record.conditions["share"] for record in records} == {"one of 2 slots"}
    shares = {tuple(record.facts["lease"]["cores"]) for record in records}
    assert len(shares) == 2
    assert {len(share) for share in shares} == {record.facts["threads"] for record in records}
