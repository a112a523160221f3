from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from memsweep.model.tokenizer import tokenizer_folder

pytestmark = pytest.mark.usefixtures("shared_cache")

TALK = [{"role": "user", "content": "why? \u00e9"}, {"role": "assistant", "content": "because"}]


def test_it_has_the_models_vocabulary() -> None:
    assert len(AutoTokenizer.from_pretrained(tokenizer_folder(1000))) == 1000


def test_what_is_encoded_comes_back() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(1000))

    ids = tokenizer.apply_chat_template(TALK, return_dict=True)["input_ids"]

    assert tokenizer.decode(ids) == (
        "<|im_start|>user\nwhy? \u00e9<|im_end|>\n<|im_start|>assistant\nbecause<|im_end|>\n"
    )


def test_a_prompt_is_where_its_completion_begins() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(1000))

    prompt = tokenizer.apply_chat_template(TALK[:1], add_generation_prompt=True, return_dict=True)[
        "input_ids"
    ]
    whole = tokenizer.apply_chat_template(TALK, return_dict=True)["input_ids"]

    assert whole[: len(prompt)] == prompt


def test_the_assistants_words_are_marked() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(1000))

    found = tokenizer.apply_chat_template(TALK, return_dict=True, return_assistant_tokens_mask=True)

    marked = [token for token, mark in zip(found["input_ids"], found["assistant_masks"], strict=True) if mark]
    assert tokenizer.decode(marked) == "because<|im_end|>"


def test_padding_is_not_the_end() -> None:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(1000))

    assert tokenizer.pad_token_id != tokenizer.eos_token_id
