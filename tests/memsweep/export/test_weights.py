from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoProcessor, PreTrainedTokenizerFast

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.export.weights import OWN_FOLDER, Weights, weights
from memsweep.model.folder import model_place
from tiny import GEOMETRY, share_cache

TINY = ModelConfig(name="tiny", source=ModelSource.GEOMETRY, geometry=GEOMETRY)
TEXT = "It's 2024:\n\n    >>> split('a  b')"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    share_cache(tmp_path_factory, monkeypatch)


def of(config: ModelConfig, tmp_path: Path, **facts: Any) -> Weights:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return weights(config, tmp_path / "there", scratch=scratch, **{"with_processor": True} | facts)


def test_a_model_with_random_weights_is_copied_and_says_so(tmp_path: Path) -> None:
    found = of(TINY, tmp_path)
    found.write(tmp_path)

    assert (found.name, found.is_random) == (OWN_FOLDER, True)
    assert (tmp_path / OWN_FOLDER / "model.safetensors").exists()


def test_trls_command_reads_the_trials_own_tokenizer_from_the_copy(tmp_path: Path) -> None:
    found = of(TINY, tmp_path)
    found.write(tmp_path)

    own = model_place(TINY).tokenizer(TEXT)["input_ids"]
    assert found.loads_alike
    assert AutoProcessor.from_pretrained(str(tmp_path / OWN_FOLDER))(TEXT)["input_ids"] == own


def test_where_it_would_read_another_that_is_noticed(tmp_path: Path) -> None:
    """A trainer that reads an AutoTokenizer takes the class of the architecture, which splits otherwise."""
    found = of(TINY, tmp_path, with_processor=False)
    found.write(tmp_path)

    assert not found.loads_alike
    assert found.tokenizer_class == "PreTrainedTokenizerFast"
    read = PreTrainedTokenizerFast.from_pretrained(tmp_path / OWN_FOLDER)
    assert read(TEXT)["input_ids"] == model_place(TINY).tokenizer(TEXT)["input_ids"]


def test_a_persons_model_is_referred_to_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model_place(TINY).name, tmp_path / "mine")
    before = json.loads(Path("mine/tokenizer_config.json").read_text(encoding="utf-8"))
    found = of(ModelConfig(name="path", source=ModelSource.PATH, path="mine"), tmp_path)
    found.write(tmp_path / "there")

    assert (found.name, found.is_random, found.source) == ("../mine", False, None)
    assert found.tokenizer_class == "AutoTokenizer"
    assert found.loads_alike
    assert json.loads(Path("mine/tokenizer_config.json").read_text(encoding="utf-8")) == before
    assert not (tmp_path / "there" / OWN_FOLDER).exists()
