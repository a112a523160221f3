from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memsweep.data.rows import FORMS
from memsweep.lengths.preparation import kept
from memsweep.lengths.tokenized import counted, sequence_names
from memsweep.lengths.whose import Asked
from memsweep.technique.settings import Settings
from tiny import DATA, tiny_config


def spoken(question: str, answer: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    return [{"role": "user", "content": question}], [{"role": "assistant", "content": answer}]


@pytest.mark.parametrize("trainer", ["sft", "kto", "dpo", "reward"])
def test_texts_are_ended_and_conversations_are_not(trainer: str, whose: Callable[..., Asked]) -> None:
    asked = whose(trainer)
    sides = {"dpo": ("chosen", "rejected"), "reward": ("chosen", "rejected")}.get(trainer, ("completion",))
    form = ("prompt", *sides)
    texts = [{"prompt": "Why? ", **dict.fromkeys(sides, answer)} for answer in ("because", "it is<|im_end|>")]

    found = counted(texts, form, asked.how, asked.tokenizer)

    expected = [
        len(asked.tokenizer(f"Why? {answer}<|im_end|>")["input_ids"]) for answer in ("because", "it is")
    ]
    assert found.tokens.tolist() == [[n] * len(sides) for n in expected]


def test_messages_and_texts_alone_are_one_sequence(whose: Callable[..., Asked]) -> None:
    asked, (question, answer) = whose(), spoken("Why?", "because")

    messages = counted([{"messages": question + answer}], ("messages",), asked.how, asked.tokenizer)
    text = counted([{"text": "because"}], ("text",), asked.how, asked.tokenizer)

    ids = asked.tokenizer.apply_chat_template(question + answer, return_dict=True)["input_ids"]
    assert messages.tokens.tolist() == [[len(ids)]]
    assert text.tokens.tolist() == [[len(asked.tokenizer("because<|im_end|>")["input_ids"])]]
    assert messages.prompts.tolist() == text.prompts.tolist() == [0]


def test_a_prompt_is_what_both_begin_with_alike(whose: Callable[..., Asked]) -> None:
    asked = whose()
    # `ab` alone is other tokens than in `abc`: what is learned begins earlier than the prompt ends.
    rows = [{"prompt": "retur", "completion": "ns"}, {"prompt": "x = ", "completion": "1"}]

    found = counted(rows, ("prompt", "completion"), asked.how, asked.tokenizer)

    for row, prompt in zip(rows, found.prompts.tolist(), strict=True):
        alone = asked.tokenizer(row["prompt"])["input_ids"]
        whole = asked.tokenizer(row["prompt"] + row["completion"] + "<|im_end|>")["input_ids"]
        assert alone[:prompt] == whole[:prompt]
        assert prompt == len(alone) or alone[prompt] != whole[prompt]


def test_a_preference_without_a_prompt_has_what_both_sides_share(whose: Callable[..., Asked]) -> None:
    asked = whose("dpo")
    (question, good), (_, bad) = spoken("Why?", "because"), spoken("Why?", "no idea at all")
    apart = [{"prompt": question, "chosen": good, "rejected": bad}]
    joined = [{"chosen": question + good, "rejected": question + bad}]

    one = counted(apart, ("prompt", "chosen", "rejected"), asked.how, asked.tokenizer)
    other = counted(joined, ("chosen", "rejected"), asked.how, asked.tokenizer)

    assert (one.tokens.tolist(), one.prompts.tolist()) == (other.tokens.tolist(), other.prompts.tolist())


def test_sequences_are_named_for_what_they_are_made_of() -> None:
    assert sequence_names(("prompt", "chosen", "rejected"), DATA["dpo"]) == (
        "prompt + chosen",
        "prompt + rejected",
    )
    assert sequence_names(("chosen", "rejected"), DATA["reward"]) == ("chosen", "rejected")
    assert sequence_names(("messages",), DATA["sft"]) == ("messages",)
    assert sequence_names(("prompt",), DATA["grpo"]) == ("prompt",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainer", "arguments"),
    [
        ("sft", {}),
        ("sft", {"max_length": 64}),
        ("sft", {"max_length": 64, "truncation_mode": "keep_end"}),
        ("sft", {"max_length": 64, "completion_only_loss": False}),
        ("sft", {"max_length": 64, "packing": True, "packing_strategy": "bfd"}),
        ("sft", {"max_length": 64, "packing": True, "packing_strategy": "bfd_split"}),
        ("sft", {"max_length": 64, "packing": True, "packing_strategy": "wrapped"}),
        ("dpo", {"max_length": 64}),
        ("dpo", {"max_length": 64, "truncation_mode": "keep_end"}),
        ("kto", {"max_length": 64}),
        ("reward", {"max_length": 192}),
        ("online_dpo", {"max_length": 40}),
        ("grpo", {}),
        ("rloo", {}),
    ],
)
def test_kept_tokens_are_those_that_a_trial_keeps(
    trainer: str,
    arguments: dict[str, Any],
    whose: Callable[..., Asked],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> None:
    from begun import built_from, cache_of, request_of
    from memsweep.data.probe import probe
    from memsweep.trial.data import preparation

    config, settings = tiny_config(trainer, examples=12), Settings(trainer=arguments)
    with cache_of(tmp_path_factory):
        examples = probe(config.dataset, config.trainer.data, 12, config.seed, 0, 0, config.trainer.batch)
        built = built_from(config, settings, tmp_path)
        request = request_of(config, settings, tmp_path)
        schedule: Any = SimpleNamespace(
            steps_per_pass=1, rows_per_pass=1, evaluates=False, block=SimpleNamespace(n_rows=1, n_steps=1)
        )
        facts = preparation(built, request, examples, schedule).facts
    in_force = {name: getattr(built.trainer.args, name) for name in arguments}
    asked = whose(trainer, max_length=getattr(built.trainer.args, "max_length", None), **_without(in_force))

    found = counted(examples.rows, examples.form, asked.how, asked.tokenizer)

    assert examples.form in FORMS[config.trainer.data]
    assert int(kept(found, asked.how, asked.how.max_length).sum()) == facts["kept_tokens"] > 0


def _without(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "max_length"}
