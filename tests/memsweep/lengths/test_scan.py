from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsweep.errors import ConfigError, DatasetError
from memsweep.lengths.scan import CHUNK, scan
from memsweep.lengths.whose import Asked


@pytest.fixture
def data(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Path]:
    """A function that writes rows to a file."""

    def write(rows: list[dict[str, Any]]) -> Path:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def test_all_rows_are_counted_in_their_order(
    data: Callable[[list[dict[str, Any]]], Path], whose: Callable[..., Asked]
) -> None:
    texts = ["one " * (1 + number % 7) for number in range(2 * CHUNK + 5)]
    asked, seen = whose(path=data([{"text": text} for text in texts])), list[int]()

    found = scan(asked, seen.append)

    assert found.names == ("text",)
    assert seen == [CHUNK, CHUNK, 5]
    assert found.counted.tokens[:, 0].tolist() == [
        len(ids) for ids in asked.tokenizer([f"{text}<|im_end|>" for text in texts])["input_ids"]
    ]


def test_rows_without_text_are_told_apart(
    data: Callable[[list[dict[str, Any]]], Path], whose: Callable[..., Asked]
) -> None:
    found = scan(whose(path=data([{"text": ""}, {"text": "one"}, {"text": None}])))

    assert (len(found.counted), found.n_unusable) == (1, 2)


def test_a_wrong_row_is_named_by_its_number_in_the_data(
    data: Callable[[list[dict[str, Any]]], Path], whose: Callable[..., Asked]
) -> None:
    path = data([*({"text": "fine"} for _ in range(CHUNK + 1)), {"text": 3}])

    with pytest.raises(DatasetError, match=f"row {CHUNK + 2}: text must be text"):
        scan(whose(path=path))


def test_data_without_a_usable_row_are_refused(
    data: Callable[[list[dict[str, Any]]], Path], whose: Callable[..., Asked]
) -> None:
    with pytest.raises(DatasetError, match="holds no example that can be used, of 2 rows"):
        scan(whose(path=data([{"text": ""}, {"text": ""}])))


def test_data_for_another_trainer_are_refused(
    data: Callable[[list[dict[str, Any]]], Path], whose: Callable[..., Asked]
) -> None:
    with pytest.raises(DatasetError, match="trainer=dpo or trainer=reward needs"):
        scan(whose("dpo", path=data([{"text": "one"}])))


def test_conversations_need_a_template(
    data: Callable[[list[dict[str, Any]]], Path], whose: Callable[..., Asked], tokenizer: Any
) -> None:
    import copy

    asked = whose(path=data([{"messages": [{"role": "user", "content": "Why?"}]}]))
    silent = copy.deepcopy(asked.tokenizer)
    silent.chat_template = None

    with pytest.raises(ConfigError, match="without a chat template"):
        scan(Asked(config=asked.config, how=asked.how, tokenizer=silent))
