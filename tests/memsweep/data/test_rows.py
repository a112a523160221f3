from __future__ import annotations

from typing import Any

import pytest

from memsweep.config.schema import DataKind
from memsweep.data.rows import checked, columns_for, length
from memsweep.errors import DatasetError

ASKED = [{"role": "user", "content": "why?"}]
SAID = [{"role": "assistant", "content": "because"}]


@pytest.mark.parametrize(
    ("kind", "columns", "form"),
    [
        (DataKind.PROMPT_COMPLETION, ["prompt", "completion", "id"], ("prompt", "completion")),
        (DataKind.PROMPT_COMPLETION, ["messages"], ("messages",)),
        (DataKind.PROMPT_COMPLETION, ["text"], ("text",)),
        (DataKind.PREFERENCE, ["chosen", "rejected"], ("chosen", "rejected")),
        (DataKind.PREFERENCE, ["chosen", "prompt", "rejected"], ("prompt", "chosen", "rejected")),
        (DataKind.PROMPT_ONLY, ["prompt", "completion"], ("prompt",)),
    ],
)
def test_the_first_form_that_the_data_have_is_taken(
    kind: DataKind, columns: list[str], form: tuple[str, ...]
) -> None:
    assert columns_for(kind, columns, "x.jsonl") == form


def test_missing_columns_are_named_with_what_is_there_and_what_would_fit() -> None:
    with pytest.raises(DatasetError) as caught:
        columns_for(DataKind.UNPAIRED_PREFERENCE, ["prompt", "completion"], "x.jsonl")

    assert str(caught.value) == (
        "x.jsonl has the columns completion, prompt; trainer=kto needs prompt and completion and label "
        "(label missing). As it is, it fits trainer=sft, trainer=grpo, trainer=rloo or trainer=online_dpo."
    )


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"messages": "hello"}, "row 1: messages must be a list of messages, got text"),
        ({"messages": [{"role": "user"}]}, "row 1: messages must hold messages with role and content"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "images are not supported"),
    ],
)
def test_a_wrong_value_is_named_by_row_and_column(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        checked([row], ("messages",), "x.jsonl")


def test_a_label_must_be_true_or_false() -> None:
    with pytest.raises(DatasetError, match="label must be true or false, got 'maybe'"):
        checked([{"prompt": ASKED, "completion": SAID, "label": "maybe"}], ("prompt", "label"), "x.csv")


def test_rows_that_hold_nothing_are_left_out() -> None:
    rows = [{"text": "one"}, {"text": ""}, {"text": None}, {}]

    assert checked(rows, ("text",), "x.jsonl") == [{"text": "one"}]


def test_text_and_messages_in_one_column_are_refused() -> None:
    with pytest.raises(DatasetError, match="prompt is text in some rows and messages in others"):
        checked([{"prompt": ASKED}, {"prompt": "why?"}], ("prompt",), "x.jsonl")


def test_a_length_is_that_of_all_text() -> None:
    assert length({"prompt": ASKED, "completion": SAID, "label": True}) == len("why?because")
