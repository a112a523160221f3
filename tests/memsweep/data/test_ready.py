"""Data that cannot be trained on are refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.data import ready
from memsweep.data.ready import require_data
from memsweep.errors import DatasetError

TEXT, PAIRS = DataKind.PROMPT_COMPLETION, DataKind.PREFERENCE


def lines(path: Path, *rows: object) -> DatasetConfig:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DatasetConfig(name="mine", source=DatasetSource.JSONL, path=str(path))


def test_what_a_trainer_takes_is_let_pass(tmp_path: Path) -> None:
    mine = lines(tmp_path / "d.jsonl", {"text": "a"}, {"text": ""}, {"other": 1})

    require_data(mine, TEXT)


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([], TEXT, r"has the columns \(none\)"),
        ([{"text": "a"}], PAIRS, "chosen and rejected missing"),
        ([{"text": "a"}, {"text": 3}], TEXT, "row 2: text must be text, got 3"),
        ([{"text": ""}], TEXT, "holds no example that can be used, of 1 rows"),
        ([["a"]], TEXT, "line 1: an object is needed"),
    ],
)
def test_of_a_small_file_every_row_is_looked_at(
    rows: list[object], kind: DataKind, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError, match=message):
        require_data(lines(tmp_path / "d.jsonl", *rows), kind)


def test_of_a_large_file_only_the_first_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "SMALL_BYTES", 10)
    mine = lines(tmp_path / "d.jsonl", *[{"words": "a"}] * 200)

    require_data(mine, TEXT)  # a row further down may have the column
    (tmp_path / "d.jsonl").write_text("{\n" + "x" * 100)
    with pytest.raises(DatasetError, match="line 1"):
        require_data(mine, TEXT)


@pytest.mark.parametrize("source", [DatasetSource.EMBEDDED, DatasetSource.HUB])
def test_what_is_no_file_is_not_looked_at(source: DatasetSource) -> None:
    require_data(DatasetConfig(name="x", source=source), TEXT)


def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    for path in ("x" * 5_000, "~nobody-of-that-name/d.jsonl"):
        with pytest.raises(DatasetError, match="cannot be read"):
            require_data(DatasetConfig(name="x", source=DatasetSource.JSONL, path=path), TEXT)


def test_a_row_with_more_fields_than_the_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text\na\nb,c\n")

    with pytest.raises(DatasetError, match="row 2 has more fields than the first line names"):
        require_data(DatasetConfig(name="x", source=DatasetSource.CSV, path=str(tmp_path / "d.csv")), TEXT)
