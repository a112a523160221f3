"""Examples that share a row do not see each other: log-probabilities are those of each example alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from seen import built_trainer, walk_config
from walk import PARAMETERS, Walk

from memsweep.technique.settings import Settings, merge

SEPARATE = {
    "padding_free": {"padding_free": True, "max_length": None},
    "bfd": {"packing": True, "packing_strategy": "bfd", "max_length": 256},
    "bfd_split": {"packing": True, "packing_strategy": "bfd_split", "max_length": 256},
}
MIXED = {"packing": True, "packing_strategy": "wrapped", "max_length": 1024}

Scores = dict[tuple[int, ...], torch.Tensor]


def scores(
    walk: Walk, trainer: Mapping[str, Any], attention: str, adapter: Mapping[str, Any] | None = None
) -> Scores:
    """Return each example's log-probabilities of its own tokens, from the batches as they reach the model."""
    settings = Settings(trainer=trainer, model={"attn_implementation": attention}, adapter=adapter or {})
    ready = built_trainer(walk_config("sft", walk.folder), settings, walk.folder).trainer
    ready.model.eval()
    found: Scores = {}
    for batch in ready.get_train_dataloader():
        inputs = {
            name: batch[name] for name in ("input_ids", "attention_mask", "position_ids") if name in batch
        }
        with torch.no_grad():
            logits = ready.model(**inputs).logits[:, -inputs["input_ids"].shape[1] :]
        for row in range(len(logits)):
            ids = inputs["input_ids"][row]
            told = logits[row, :-1].log_softmax(-1).gather(-1, ids[1:, None])[:, 0]
            for start, end in spans(row, inputs):
                found[tuple(ids[start:end].tolist())] = told[start : end - 1]
    return found


def spans(row: int, inputs: Mapping[str, torch.Tensor]) -> list[tuple[int, int]]:
    """Return where each example of a row starts and ends, by position ids or by the mask."""
    n = inputs["input_ids"].shape[1]
    if "position_ids" in inputs:
        starts = (inputs["position_ids"][row] == 0).nonzero()[:, 0].tolist()
        return list(zip(starts, [*starts[1:], n], strict=True))
    places = inputs["attention_mask"][row].nonzero()[:, 0].tolist()
    return [(places[0], places[-1] + 1)]


def furthest(some: Scores, others: Scores) -> float:
    assert some.keys() == others.keys()
    return max(float((some[ids] - others[ids]).abs().max()) for ids in some)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", SEPARATE)
def test_examples_in_one_row_are_scored_as_if_alone(walk: Walk, kind: str, attention: str) -> None:
    alone = scores(walk, {"per_device_train_batch_size": 1, "max_length": None}, attention)

    assert len(alone) == 8
    assert furthest(scores(walk, SEPARATE[kind], attention), alone) < 1e-5


def test_examples_that_are_joined_without_borders_are_not(walk: Walk) -> None:
    """The control: what the tests above would see if examples saw each other."""
    alone = scores(walk, {"per_device_train_batch_size": 1, "max_length": None}, "sdpa")
    (stream,) = scores(walk, MIXED, "sdpa").items()
    ids, told = stream

    off = []
    for example, expected in alone.items():
        start = next(n for n in range(len(ids)) if ids[n : n + len(example)] == example)
        if start:  # the first has nothing before it
            off.append(float((told[start : start + len(expected)] - expected).abs().max()))

    assert min(off) > 1e-2


def test_virtual_tokens_before_a_row_are_not_before_each_example(walk: Walk) -> None:
    prompt = {"type": "prompt_tuning", "num_virtual_tokens": 8}
    alone = scores(walk, {"per_device_train_batch_size": 1, "max_length": None}, "sdpa", prompt)

    assert furthest(scores(walk, SEPARATE["bfd"], "sdpa", prompt), alone) > 1e-2


def test_an_adapter_in_the_layers_keeps_examples_apart(walk: Walk) -> None:
    lora = {"type": "lora", "r": 4}
    alone = scores(walk, {"per_device_train_batch_size": 1, "max_length": None}, "sdpa", lora)

    assert furthest(scores(walk, SEPARATE["bfd"], "sdpa", lora), alone) < 1e-5


def test_what_a_row_cannot_hold_is_cut_off_or_split_off_as_the_option_says(walk: Walk) -> None:
    def lengths(**options: str) -> list[int]:
        settings = merge(walk.choice("sft", options), "sft", walk.catalogue)
        ready = built_trainer(walk_config("sft", walk.folder), settings, walk.folder).trainer
        return [len(ids) for ids in ready.train_dataset["input_ids"]]

    whole, limit = lengths(), PARAMETERS["technique.truncation.max_length"]
    held = {name: sum(lengths(packing=name, truncation="max_length")) for name in ("bfd", "bfd_split")}

    assert max(whole) > limit
    assert held == {"bfd": sum(min(n, limit) for n in whole), "bfd_split": sum(whole)}
