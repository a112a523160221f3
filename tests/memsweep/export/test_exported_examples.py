from __future__ import annotations

import json
from pathlib import Path

import pytest

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.errors import ConfigError
from memsweep.export.examples import OWN_FILE, Examples, examples, from_folder
from tiny import EMBEDDED, share_cache

ROWS = [{"prompt": f"p{number}", "completion": f"c{number}", "source": "web"} for number in range(3)]


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def of_file(path: Path, folder: Path, kind: DataKind = DataKind.PROMPT_COMPLETION) -> Examples:
    source = {".jsonl": DatasetSource.JSONL, ".csv": DatasetSource.CSV}[path.suffix]
    return examples(DatasetConfig(name=str(source), source=source, path=str(path)), kind, 0, folder)


def test_a_persons_file_is_referred_to_with_the_columns_that_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = of_file(written(Path("mine.jsonl"), [*ROWS]), Path("there"))

    assert (found.path, found.data_files, found.split) == ("json", "../mine.jsonl", "train")
    assert found.columns == ["prompt", "completion"]
    assert found.rows is None


def test_rows_that_hold_nothing_are_left_out_of_a_copy(tmp_path: Path) -> None:
    empty: dict[str, object] = {"prompt": "p", "completion": None}
    found = of_file(written(tmp_path / "mine.jsonl", [*ROWS, empty]), tmp_path / "there")
    found.write(tmp_path / "there")

    lines = (tmp_path / "there" / OWN_FILE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["prompt"] for line in lines] == ["p0", "p1", "p2"]
    assert "without 1 rows that hold nothing" in found.remark


def test_labels_in_words_are_copied_as_truth_values(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("prompt,completion,label\np,c,true\np,d,0\n", encoding="utf-8")
    found = of_file(tmp_path / "mine.csv", tmp_path, DataKind.UNPAIRED_PREFERENCE)

    assert found.rows is not None
    assert [row["label"] for row in found.rows] == [True, False]


def test_the_embedded_examples_are_all_written(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_cache(tmp_path_factory, monkeypatch)
    found = examples(EMBEDDED, DataKind.PREFERENCE, 0, tmp_path)
    found.write(tmp_path)

    n_lines = len((tmp_path / OWN_FILE).read_text(encoding="utf-8").splitlines())
    assert found.rows is not None
    assert n_lines == len(found.rows) > 1_000
    assert found.columns == ["prompt", "chosen", "rejected"]


def test_a_repository_is_named() -> None:
    config = DatasetConfig(name="organization/data", source=DatasetSource.HUB, split="test")

    found = examples(config, DataKind.PROMPT_COMPLETION, 0, Path("there"))
    assert (found.path, found.data_files, found.split) == ("organization/data", None, "test")


def test_data_that_are_gone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not there"):
        of_file(tmp_path / "gone.jsonl", tmp_path)


def test_a_path_beyond_the_working_folder_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    assert from_folder(Path("model"), Path("out/there")) == "../../model"
    assert from_folder(tmp_path / "model", Path("there")) == str((tmp_path / "model").resolve())
    assert from_folder(Path("model"), tmp_path / "there") == str((tmp_path / "work" / "model").resolve())
