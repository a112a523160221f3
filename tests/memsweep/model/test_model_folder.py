from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.errors import ConfigError
from memsweep.model.folder import model_folder, model_place
from tiny import GEOMETRY, tiny_config

pytestmark = pytest.mark.usefixtures("shared_cache")


def test_a_geometry_becomes_a_folder_that_transformers_loads() -> None:
    model = AutoModelForCausalLM.from_pretrained(model_folder(GEOMETRY))

    assert model.config.hidden_size == GEOMETRY["hidden_size"]
    assert model.config.eos_token_id == model_place(tiny_config().model).tokenizer.eos_token_id


def test_it_is_made_once() -> None:
    made = (model_folder(GEOMETRY) / "model.safetensors").stat().st_mtime_ns

    assert (model_folder(GEOMETRY) / "model.safetensors").stat().st_mtime_ns == made


def test_making_it_leaves_the_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)

    torch.manual_seed(0)
    model_folder({**GEOMETRY, "num_hidden_layers": 1})

    assert torch.equal(torch.rand(1), expected)


def test_an_unknown_architecture_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"model\.geometry makes no model: .*nonesuch"):
        model_folder({**GEOMETRY, "model_type": "nonesuch"})


def test_a_geometry_without_a_vocabulary_is_refused() -> None:
    with pytest.raises(ConfigError, match="must say vocab_size"):
        model_folder({"model_type": "qwen2"})


def test_a_folder_of_ones_own_is_passed_through() -> None:
    folder = model_folder(GEOMETRY)

    place = model_place(ModelConfig(name="mine", source=ModelSource.PATH, path=str(folder)))

    assert place.name == str(folder)
    assert len(place.tokenizer) == GEOMETRY["vocab_size"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = ModelConfig(name="mine", source=ModelSource.PATH, path=str(tmp_path / "nowhere"))

    with pytest.raises(ConfigError, match=r"nowhere must be a folder .*there is no such folder"):
        model_place(config)
