from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from memsweep.config.schema import DatasetConfig, DatasetSource
from memsweep.data import files
from memsweep.data.files import read_rows, stream_rows
from memsweep.errors import DatasetError

ROWS = [
    {"prompt": "why?", "completion": "because", "label": True},
    {"prompt": "é", "completion": "b", "label": False},
]


@pytest.mark.parametrize("source", [DatasetSource.JSONL, DatasetSource.PARQUET, DatasetSource.CSV])
def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path, source: DatasetSource) -> None:
    path = tmp_path / f"data.{source}"
    _write(path, source)

    assert read_rows(_config(path, source)) == ROWS


def test_a_folder_is_read_in_the_order_of_its_files_names(tmp_path: Path) -> None:
    for number in (2, 1):
        (tmp_path / f"part{number}.jsonl").write_text(json.dumps({"text": str(number)}))
    (tmp_path / "notes.txt").write_text("not data")

    assert read_rows(_config(tmp_path, DatasetSource.JSONL)) == [{"text": "1"}, {"text": "2"}]


def test_messages_survive_parquet(tmp_path: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": "why?"}]}]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")

    assert read_rows(_config(tmp_path / "m.parquet", DatasetSource.PARQUET)) == rows


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\nnot json\n')

    with pytest.raises(DatasetError, match=r"bad\.jsonl cannot be read as jsonl: line 2"):
        read_rows(_config(tmp_path / "bad.jsonl", DatasetSource.JSONL))


def test_a_file_that_is_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("hello")

    with pytest.raises(DatasetError, match=r"text\.parquet cannot be read as parquet"):
        read_rows(_config(tmp_path / "text.parquet", DatasetSource.PARQUET))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset\.path=.*nowhere\.jsonl is not there"):
        read_rows(_config(tmp_path / "nowhere.jsonl", DatasetSource.JSONL))


def test_a_folder_without_such_files_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no file that ends in \.csv"):
        read_rows(_config(tmp_path, DatasetSource.CSV))


def _config(path: Path, source: DatasetSource) -> DatasetConfig:
    return DatasetConfig(name="mine", source=source, path=str(path))


def _write(path: Path, source: DatasetSource) -> None:
    if source is DatasetSource.JSONL:
        path.write_text("\n".join(map(json.dumps, ROWS)))
    elif source is DatasetSource.PARQUET:
        pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        lines = [f"{row['prompt']},{row['completion']},{row['label']}" for row in ROWS]
        path.write_text("\n".join(["prompt,completion,label", *lines]), encoding="utf-8")


def test_a_trial_reads_the_first_rows_and_a_stream_has_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in (0, 1):
        lines = [json.dumps({"text": str(2 * part + number)}) for number in (0, 1)]
        (tmp_path / f"part{part}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(files, "MOST_ROWS", 3)
    config = _config(tmp_path, DatasetSource.JSONL)

    assert [row["text"] for row in read_rows(config)] == ["0", "1", "2"]
    assert [row["text"] for row in stream_rows(config)] == ["0", "1", "2", "3"]


def test_a_stream_is_read_as_far_as_it_is_taken(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\nnot json\n', encoding="utf-8")

    assert next(stream_rows(_config(tmp_path / "bad.jsonl", DatasetSource.JSONL))) == {"text": "fine"}
