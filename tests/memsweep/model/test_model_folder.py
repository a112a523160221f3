from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.errors import ConfigError
from memsweep.model.folder import model_folder, model_place, require_template
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

    place = model_place(_mine(folder))

    assert place.name == str(folder)
    assert len(place.tokenizer) == GEOMETRY["vocab_size"]


def test_a_gguf_file_becomes_a_folder_of_the_cache(tmp_path: Path, shared_cache: Path) -> None:
    pytest.importorskip("gguf", reason='the package gguf is not installed: pip install "memsweep[gguf]"')
    from tiny_gguf import N_TOKENS, write_gguf

    write_gguf(tmp_path / "a.gguf")
    by_file = model_place(_mine(tmp_path / "a.gguf"))
    by_folder = model_place(_mine(tmp_path))

    assert Path(by_file.name).is_relative_to(shared_cache)
    assert by_folder.name == by_file.name
    assert len(by_file.tokenizer) == N_TOKENS


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.path=.*nowhere is not there"):
        model_place(_mine(tmp_path / "nowhere"))


def test_a_folder_without_a_tokenizer_is_refused_in_words(tmp_path: Path) -> None:
    config = (model_folder(GEOMETRY) / "config.json").read_bytes()
    (tmp_path / "config.json").write_bytes(config)

    with pytest.raises(ConfigError, match=r"a tokenizer without a vocabulary: is its tokenizer\.json there"):
        model_place(_mine(tmp_path))


MESSAGES = [
    {"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]}
]
TEXT = [{"prompt": "a", "completion": "b"}]


def test_conversations_need_a_chat_template() -> None:
    place = model_place(tiny_config().model)
    place.tokenizer.chat_template = None

    with pytest.raises(ConfigError, match=r"model=tiny .* without a chat template.*\(prompt, completion\)"):
        require_template(tiny_config(), place, MESSAGES)


def test_text_needs_no_chat_template() -> None:
    place = model_place(tiny_config().model)
    place.tokenizer.chat_template = None

    require_template(tiny_config(), place, TEXT)


def test_a_template_of_the_tokenizers_or_of_the_trainers_will_do() -> None:
    place = model_place(tiny_config().model)
    require_template(tiny_config(), place, MESSAGES)
    place.tokenizer.chat_template = None

    require_template(tiny_config(arguments={"chat_template_path": "mine.jinja"}), place, MESSAGES)


def _mine(path: Path) -> ModelConfig:
    return ModelConfig(name="mine", source=ModelSource.PATH, path=str(path))
