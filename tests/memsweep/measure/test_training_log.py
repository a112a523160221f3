from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainerState

from memsweep.measure.training_log import TrainingLog
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured, NonFinite
from memsweep.technique.settings import Settings
from memsweep.trial.run import run_with_settings
from tiny import share_cache, tiny_config


def logged(file: Path, *entries: tuple[int, dict[str, Any]], is_first: bool = True) -> list[dict[str, Any]]:
    """Return what stands in the file after a training that logs `entries`: step and numbers."""
    log, state = TrainingLog(file), TrainerState(is_world_process_zero=is_first)
    log.on_train_begin(None, state, None)
    for state.global_step, numbers in entries:
        log.on_log(None, state, None, logs=numbers)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_every_entry_is_a_line_with_its_step(tmp_path: Path) -> None:
    found = logged(tmp_path / "log.jsonl", (1, {"loss": 2.5, "epoch": 0.5}), (3, {"eval_loss": 2.0}))

    assert found == [{"step": 1, "loss": 2.5, "epoch": 0.5}, {"step": 3, "eval_loss": 2.0}]


def test_a_number_that_is_not_finite_is_text(tmp_path: Path) -> None:
    found = logged(tmp_path / "log.jsonl", (1, {"loss": float("nan"), "grad_norm": float("inf")}))

    assert found == [{"step": 1, "loss": "nan", "grad_norm": "inf"}]


def test_the_last_words_of_a_training_are_left_out(tmp_path: Path) -> None:
    assert logged(tmp_path / "log.jsonl", (9, {"train_runtime": 3.0, "train_samples_per_second": 99.0})) == []


def test_an_earlier_training_leaves_nothing_behind(tmp_path: Path) -> None:
    logged(tmp_path / "log.jsonl", (1, {"loss": 1.0}))

    assert logged(tmp_path / "log.jsonl", (1, {"loss": 2.0})) == [{"step": 1, "loss": 2.0}]


def test_only_the_first_of_several_processes_writes(tmp_path: Path) -> None:
    assert logged(tmp_path / "log.jsonl", (1, {"loss": 1.0}), is_first=False) == []


def test_what_was_logged_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    child = os.fork()
    if child == 0:
        try:
            logged(file, (1, {"loss": 2.5}))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert json.loads(file.read_text()) == {"step": 1, "loss": 2.5}


@pytest.fixture
def trial(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> TrialFolder:
    """The folder of a trial."""
    share_cache(tmp_path_factory, monkeypatch)
    return TrialFolder(tmp_path / "trial")


def lines(trial: TrialFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trial.log.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_trial_leaves_what_its_trainer_logged_between_passes(trial: TrialFolder) -> None:
    record = run_with_settings(tiny_config(examples=8, passes=2, evaluation=4), Settings(), trial)
    assert isinstance(record.outcome, Measured)
    trained = [line for line in lines(trial) if "loss" in line]

    assert [line["step"] for line in trained] == sorted({line["step"] for line in trained})
    assert trained[0]["step"] == 1
    assert all({"grad_norm", "learning_rate"} <= set(line) for line in trained)
    assert trained[-1]["loss"] == pytest.approx(record.outcome.measures["loss"])
    assert len([line for line in lines(trial) if "eval_loss" in line]) == 1
    assert len(trained) <= 3 + len(record.facts["windows"])


@pytest.mark.slow
def test_the_loss_that_ends_a_trial_is_in_its_log(
    trial: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Trainer.training_step

    def broken(*given: Any, **named: Any) -> torch.Tensor:
        return step(*given, **named) * float("nan")

    monkeypatch.setattr(Trainer, "training_step", broken)

    record = run_with_settings(tiny_config(), Settings(), trial)

    assert isinstance(record.outcome, NonFinite)
    assert lines(trial)[-1]["loss"] == "nan"
