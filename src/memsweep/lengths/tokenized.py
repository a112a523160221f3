"""How many tokens do examples have, as their trainer tokenizes them?

Many rows at once: a tokenizer in Rust counts a thousand in the time it takes to be called a dozen times.
Source: trl==1.16.0 `tokenize_fn` of each trainer, data_utils.py `_tokenize`, `common_prefix_length`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memsweep.config.schema import DataKind
from memsweep.lengths.preparation import Counted, Preparation

Ids = Sequence[int]

_SIDES: Mapping[DataKind, tuple[str, ...]] = {
    DataKind.PREFERENCE: ("chosen", "rejected"),
    DataKind.UNPAIRED_PREFERENCE: ("completion",),
    DataKind.PROMPT_COMPLETION: ("completion",),
}


def sequence_names(form: Sequence[str], kind: DataKind) -> tuple[str, ...]:
    """Return what the sequences of an example are called: `prompt + chosen`, `prompt + rejected`."""
    if kind is DataKind.PROMPT_ONLY or len(form) == 1:
        return tuple(form)
    has_prompt = "prompt" in form
    return tuple(f"prompt + {side}" if has_prompt else side for side in _SIDES[kind])


def counted(
    rows: Sequence[Mapping[str, Any]], form: Sequence[str], how: Preparation, tokenizer: Any
) -> Counted:
    """Return the tokens of examples, nothing left out.

    Args:
        rows: The examples, with the columns of `form`.
        form: Their columns.
        how: What the trainer does with them.
        tokenizer: The model's.
    """
    if how.kind is DataKind.PROMPT_ONLY:
        return _alone(_ids(tokenizer, [row["prompt"] for row in rows], asks=True))
    if len(form) == 1:
        return _alone(_ids(tokenizer, _ended([row[form[0]] for row in rows], tokenizer)))
    if "prompt" not in form:
        if how.drops_long:
            return _beside(
                [_ids(tokenizer, _ended(_column(rows, side), tokenizer)) for side in _SIDES[how.kind]]
            )
        rows = _with_prompts(rows)
    prompts = _column(rows, "prompt")
    wholes = [
        _ids(tokenizer, [p + a for p, a in zip(prompts, _ended(_column(rows, side), tokenizer), strict=True)])
        for side in _SIDES[how.kind]
    ]
    if not how.needs_answer or how.drops_long:
        return _beside(wholes)
    asked = _ids(tokenizer, prompts, asks=True)
    shared = [[_shared(one, whole) for one, whole in zip(asked, side, strict=True)] for side in wholes]
    return Counted(_beside(wholes).tokens, np.array(shared, dtype=np.int64).min(axis=0))


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def _with_prompts(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return preferences with the prompt that both sides begin with as a column of its own."""
    from trl import extract_prompt

    return [extract_prompt(dict(row)) for row in rows]


def _ended(values: list[Any], tokenizer: Any) -> list[Any]:
    """Return texts with the token that ends a text; conversations end by their template."""
    end = tokenizer.eos_token
    return [value + end if isinstance(value, str) and not value.endswith(end) else value for value in values]


def _ids(tokenizer: Any, values: list[Any], *, asks: bool = False) -> list[Ids]:
    """Return the token ids of texts or of conversations.

    Args:
        tokenizer: The model's.
        values: All of one format.
        asks: Conversations stop where the assistant is to answer.
    """
    if not values:
        return []
    found: list[Ids]
    if isinstance(values[0], str):
        found = tokenizer(values, return_attention_mask=False, verbose=False)["input_ids"]
    else:
        texts = tokenizer.apply_chat_template(values, tokenize=False, add_generation_prompt=asks)
        # The template writes all special tokens itself.
        found = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)[
            "input_ids"
        ]
    return found


def _shared(prompt: Ids, whole: Ids) -> int:
    """Return how many tokens two sequences begin with alike."""
    if whole[: len(prompt)] == prompt:
        return len(prompt)
    return next(n for n, (one, other) in enumerate(zip([*prompt, None], whole, strict=False)) if one != other)


def _alone(ids: Sequence[Ids]) -> Counted:
    return _beside([ids])


def _beside(sides: Sequence[Sequence[Ids]]) -> Counted:
    tokens = np.array([[len(ids) for ids in side] for side in sides], dtype=np.int64).T
    return Counted(tokens, np.zeros(len(tokens), dtype=np.int64))
