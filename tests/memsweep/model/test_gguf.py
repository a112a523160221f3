"""The cache folder that a GGUF file becomes, on a tiny file that is written here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from memsweep.data.embedded import embedded_texts
from memsweep.errors import ConfigError
from memsweep.model.gguf import gguf_folder
from memsweep.model.tokenizer import tokenizer_folder

pytest.importorskip("gguf", reason='the package gguf is not installed: pip install "memsweep[gguf]"')

from tiny_gguf import N_TOKENS, write_gguf

pytestmark = pytest.mark.usefixtures("shared_cache")


def test_the_weights_are_those_of_the_file_in_bfloat16(tmp_path: Path) -> None:
    expected = write_gguf(tmp_path / "a.gguf")

    model = AutoModelForCausalLM.from_pretrained(gguf_folder(tmp_path / "a.gguf"))
    found = dict(model.named_parameters())

    assert set(found) == set(expected)
    assert model.config.tie_word_embeddings
    for name, weights in expected.items():
        torch.testing.assert_close(found[name].data, weights.to(torch.bfloat16), rtol=0, atol=0)


def test_nothing_marks_the_model_as_quantized(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")

    config = json.loads((gguf_folder(tmp_path / "a.gguf") / "config.json").read_text())

    assert "quantization_config" not in config
    assert config["dtype"] == "bfloat16"


def test_the_tokenizer_is_that_of_the_file(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    text = "\n".join(embedded_texts()[:20]) + "<|im_end|>"

    tokenizer = AutoTokenizer.from_pretrained(gguf_folder(tmp_path / "a.gguf"))
    original = AutoTokenizer.from_pretrained(tokenizer_folder(N_TOKENS))

    assert tokenizer(text)["input_ids"] == original(text)["input_ids"]
    assert tokenizer.chat_template == original.chat_template
    assert (tokenizer.pad_token, tokenizer.eos_token) == (original.pad_token, original.eos_token)


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    write_gguf(file)
    first = gguf_folder(file)
    made = (first / "model.safetensors").stat().st_mtime_ns
    again = gguf_folder(file)
    os.utime(file, ns=(1, 1))
    changed = gguf_folder(file)

    assert again == first
    assert (first / "model.safetensors").stat().st_mtime_ns == made
    assert changed != first


def test_the_wait_is_announced_where_there_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_gguf(tmp_path / "a.gguf")
    gguf_folder(tmp_path / "a.gguf")
    first = [record.getMessage() for record in caplog.records if record.name == "memsweep.model.gguf"]
    caplog.clear()
    gguf_folder(tmp_path / "a.gguf")

    assert len(first) == 2
    assert "a.gguf (171.2 KiB): about 25 s for 100 MB, this once" in first[0]
    assert caplog.records == []


def test_an_architecture_that_transformers_does_not_read_is_named(tmp_path: Path, own_cache: Path) -> None:
    write_gguf(tmp_path / "a.gguf", architecture="rwkv7")
    before = set(own_cache.rglob("*"))

    with pytest.raises(ConfigError, match=r"a\.gguf cannot be read by transformers .*rwkv7") as caught:
        gguf_folder(tmp_path / "a.gguf")

    assert "\n" not in str(caught.value)
    assert {path for path in own_cache.rglob("*") if path.is_file()} <= before


def test_a_file_that_is_something_else_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"not at all")

    with pytest.raises(ConfigError, match=r"a\.gguf cannot be read by transformers"):
        gguf_folder(tmp_path / "a.gguf")


def test_a_file_that_was_cut_off_is_refused_in_words(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    whole = (tmp_path / "a.gguf").read_bytes()
    (tmp_path / "a.gguf").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(ConfigError, match=r"a\.gguf cannot be read by transformers"):
        gguf_folder(tmp_path / "a.gguf")


def test_a_part_of_a_model_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf", without="ffn_down")

    with pytest.raises(ConfigError, match=r"lacks weights of a LlamaForCausalLM: .*down_proj.*merge them"):
        gguf_folder(tmp_path / "a.gguf")
