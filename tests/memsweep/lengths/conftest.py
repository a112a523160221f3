"""A tokenizer, and whose lengths are asked for, without composing a config."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsweep.config.schema import DatasetConfig, DatasetSource
from memsweep.lengths.preparation import preparation
from memsweep.lengths.whose import Asked
from tiny import DATA, GEOMETRY, share_cache, tiny_config


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tokenizer of the tiny model."""
    from transformers import PreTrainedTokenizerFast

    from memsweep.model.tokenizer import tokenizer_folder

    with pytest.MonkeyPatch.context() as patch:
        share_cache(tmp_path_factory, patch)
        return PreTrainedTokenizerFast.from_pretrained(tokenizer_folder(int(GEOMETRY["vocab_size"])))


@pytest.fixture
def whose(tokenizer: Any) -> Callable[..., Asked]:
    """A function that says whose lengths are asked for: a trainer with fields of its arguments."""

    def make(trainer: str = "sft", path: Path | None = None, tokens: int = 8, **arguments: Any) -> Asked:
        dataset = DatasetConfig(
            name="mine" if path else "embedded",
            source=DatasetSource.JSONL if path else DatasetSource.EMBEDDED,
            path=str(path) if path else None,
        )
        how = preparation(
            trainer,
            DATA[trainer],
            {"max_length": 1024, **arguments},
            tokens,
            makes_room=trainer == "online_dpo",
        )
        return Asked(config=tiny_config(trainer, dataset=dataset), how=how, tokenizer=tokenizer)

    return make
