"""Trials that take seconds, for tests of what happens inside one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memsweep.config.schema import (
    BudgetConfig,
    DataKind,
    DatasetConfig,
    DatasetSource,
    LaunchConfig,
    MeasureConfig,
    ModelConfig,
    ModelSource,
    RewardConfig,
    TrainerConfig,
    TrialConfig,
)
from memsweep.machine import Device

GEOMETRY = {
    "model_type": "qwen2",
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}

COMPLETION_TOKENS = 8

DATA = {
    "sft": DataKind.PROMPT_COMPLETION,
    "dpo": DataKind.PREFERENCE,
    "reward": DataKind.PREFERENCE,
    "kto": DataKind.UNPAIRED_PREFERENCE,
    "grpo": DataKind.PROMPT_ONLY,
    "rloo": DataKind.PROMPT_ONLY,
    "online_dpo": DataKind.PROMPT_ONLY,
}

EMBEDDED = DatasetConfig(name="embedded", source=DatasetSource.EMBEDDED)


def tiny_config(
    trainer: str = "sft",
    *,
    batch: int = 4,
    examples: int = 4,
    passes: int = 1,
    evaluation: int = 0,
    arguments: Mapping[str, Any] | None = None,
    dataset: DatasetConfig = EMBEDDED,
    budget_bytes: int | None = None,
    geometry: Mapping[str, Any] | None = None,
) -> TrialConfig:
    """Return a trial of a tiny model on one CPU thread."""
    generates = DATA[trainer] is DataKind.PROMPT_ONLY
    grouped = {"num_generations": 2} if trainer in ("grpo", "rloo") else {}
    return TrialConfig(
        trainer=TrainerConfig(
            name=trainer,
            data=DATA[trainer],
            batch=batch,
            completion_tokens=COMPLETION_TOKENS if generates else None,
            arguments={**grouped, **(arguments or {})},
        ),
        model=ModelConfig(
            name="tiny", source=ModelSource.GEOMETRY, geometry={**GEOMETRY, **(geometry or {})}
        ),
        dataset=dataset,
        reward=RewardConfig(name="length"),
        technique={},
        measure=MeasureConfig(
            name="test",
            probe_examples=examples,
            evaluation_examples=evaluation,
            precision=0.5,
            min_passes=2,
            max_passes=max(2, passes),
            max_seconds=30.0,
        ),
        budget=BudgetConfig(name="test", memory_bytes=budget_bytes),
        launch=LaunchConfig(name="local", device=Device.CPU, threads=1, timeout_seconds=100.0),
    )


def share_cache(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Path:
    """Let all tests that are run together use one cache folder, which starts empty."""
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # a folder a process, and one around
    folder = shared / "memsweep-cache"
    patch.setenv("MEMSWEEP_CACHE", str(folder))
    return folder
