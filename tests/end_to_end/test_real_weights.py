"""A language model that has learned something: SmolLM2-135M-Instruct, as a GGUF file of 94 MiB.

Random weights show speed and memory; whether what is trained is the model that the file holds, they do not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.data.probe import probe
from memsweep.model.folder import ModelPlace, model_place
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialRecord
from memsweep.technique.settings import Settings
from memsweep.trainers.build import build
from memsweep.trainers.recipe import TrialRequest
from tiny import tiny_config

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "build" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
N_PARAMETERS = 134_515_008
SMOLLM2 = ModelConfig(name="smollm2", source=ModelSource.PATH, path=str(WEIGHTS))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not WEIGHTS.exists() and os.environ.get("MEMSWEEP_TEST_WEIGHTS") != "required",
        reason=f"{WEIGHTS.relative_to(ROOT)} is not there; `make test-slow` downloads it, 93 MB",
    ),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that all tests of this file share, empty before the first."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(cache: Path, monkeypatch: pytest.MonkeyPatch) -> ModelPlace:
    """Where the model is once the file has been read."""
    monkeypatch.setenv("MEMSWEEP_CACHE", str(cache))
    return model_place(SMOLLM2)


@pytest.mark.parametrize(
    ("words", "share"),
    [(["technique/adapter=baseline"], 1.0), (["technique/adapter=lora", "technique.adapter.r=8"], 0.01)],
    ids=["full", "lora"],
)
def test_a_trial_is_measured(words: list[str], share: float, cache: Path, tmp_path: Path) -> None:
    process = _train(tmp_path, cache, f"model.path={WEIGHTS}", *words)

    assert process.returncode == 0, process.stderr
    assert re.search(r"tokens/s ±[\d.,]+ %, peak", process.stdout)
    measures = _measures(tmp_path)
    assert 0 < measures["trained_parameters"] <= share * N_PARAMETERS
    # Weights in 32 bit; where all are trained, gradients and two states as well.
    assert measures["peak_memory_bytes"] > (16 if share == 1 else 4) * N_PARAMETERS * 0.9


def test_the_model_still_knows_what_it_was_taught(place: ModelPlace) -> None:
    model = AutoModelForCausalLM.from_pretrained(place.name, dtype=torch.float32)
    asked = place.tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
    )

    with torch.no_grad():
        answer = model.generate(**asked, max_new_tokens=12, do_sample=False)[0, asked["input_ids"].shape[1] :]

    assert place.tokenizer.decode(answer, skip_special_tokens=True) == "The capital of France is Paris."


def test_lora_learns_the_examples(place: ModelPlace, tmp_path: Path) -> None:
    losses = _losses(
        place,
        tmp_path,
        trainer={"max_length": 96, "learning_rate": 1e-3, "lr_scheduler_type": "constant"},
        adapter={"type": "lora", "r": 8, "lora_alpha": 16},
    )

    assert losses[0] < 5  # of a model that knows the language; one with random weights starts at 10.8
    assert sum(losses[-2:]) < sum(losses[:2]) - 1  # the last pass and the first, two steps each


def test_a_folder_of_the_same_weights_is_the_same_trial(
    place: ModelPlace, cache: Path, tmp_path: Path
) -> None:
    words = ["technique/adapter=lora", "technique.adapter.r=8"]
    process = _train(tmp_path, cache, f"model.path={place.name}", *words)

    assert process.returncode == 0, process.stderr
    assert _measures(tmp_path)["peak_memory_bytes"] > 4 * N_PARAMETERS * 0.9


def _losses(place: ModelPlace, folder: Path, trainer: dict[str, Any], adapter: dict[str, Any]) -> list[float]:
    """Return the loss of each of eight steps, two examples a step, four examples over and over."""
    logs = {"logging_strategy": "steps", "logging_steps": 1}
    config = replace(tiny_config(batch=2, examples=4), model=SMOLLM2)
    rows = probe(config.dataset, config.trainer.data, n_examples=4, seed=0).rows
    request = TrialRequest(
        config=config,
        settings=Settings(trainer={**trainer, **logs}, adapter=adapter),
        device=config.launch.device,
        model=place.name,
        revision=None,
        tokenizer=place.tokenizer,
        data=Dataset.from_list(list(rows)),
        folder=folder,
    )
    built = build(request).trainer
    built.args.max_steps = 8
    built.train()
    return [entry["loss"] for entry in built.state.log_history if "loss" in entry]


def _train(folder: Path, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one trial of two short examples, as a person would."""
    always = [
        "model=path",
        "technique/truncation=max_length",
        "technique.truncation.max_length=64",
        "technique/precision=fp32",
        "measure.probe_examples=2",
        "trainer.batch=2",
        "launch.threads=2",
    ]
    return subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *always, *words],
        cwd=folder,
        env={**os.environ, "MEMSWEEP_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _measures(folder: Path) -> dict[str, float]:
    """Return what the only trial measured."""
    (trial,) = (folder / "outputs" / "single").iterdir()
    outcome = TrialRecord.read(TrialFolder(trial)).outcome

    assert isinstance(outcome, Measured), outcome
    return dict(outcome.measures)
