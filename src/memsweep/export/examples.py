"""Where does the exported folder find its data?

Data of a person stay where they are and are referred to.  The embedded examples are written into the folder,
and so are data of which the trials left rows out: TRL would stumble over those.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.data.embedded import embedded_rows
from memsweep.data.files import MOST_ROWS, data_files, read_rows
from memsweep.data.rows import checked, columns_for

OWN_FILE = "data/train.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """What `datasets.load_dataset` is called with.

    Attributes:
        path: `json`, `parquet` or `csv`, or a repository's name.
        data_files: The files; None for a repository.
        split: The split.
        columns: Those that are used; None leaves it to the trainer.
        rows: What is written to `OWN_FILE`; None when nothing is.
        remark: What a person must know of them; empty when nothing.
    """

    path: str
    data_files: str | list[str] | None
    split: str
    columns: list[str] | None
    rows: list[Mapping[str, Any]] | None = None
    remark: str = ""

    def write(self, folder: Path) -> None:
        """Write the rows, where there are any to be written."""
        if self.rows is not None:
            path = folder / OWN_FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)


def examples(config: DatasetConfig, kind: DataKind, seed: int, folder: Path) -> Examples:
    """Return all the data that a trial's examples were chosen from.

    Args:
        config: The data.
        kind: What a row must hold.
        seed: Of the trial: which answers of the embedded data are wrong, and how, depends on it.
        folder: The folder that is exported to.

    Raises:
        ConfigError: If the data are not there any more, or not what the trainer needs.
    """
    if config.source is DatasetSource.HUB:
        return Examples(path=config.name, data_files=None, split=config.split, columns=None)
    if config.source is DatasetSource.EMBEDDED:
        rows = embedded_rows(kind, seed)
        about = "The documentation of Python's own standard library, which the trials trained on."
        return _own(rows, list(rows[0]), about)
    rows, where = read_rows(config), str(config.path)
    form = list(columns_for(kind, {column: None for row in rows for column in row}, where))
    usable = checked(rows, form, where)
    has_words = (
        config.source is DatasetSource.CSV and "label" in form
    )  # which another reader may read otherwise
    if len(usable) < len(rows) or has_words:
        left_out = len(rows) - len(usable)
        about = f"What the trials read of {config.name}"
        about += f", without {left_out:,} rows that hold nothing" if left_out else ""
        about += f"; beyond its first {MOST_ROWS:,} rows nothing was read" if len(rows) == MOST_ROWS else ""
        return _own(usable, form, f"{about}.")
    files = [from_folder(path, folder) for path in data_files(config)]
    kinds = {DatasetSource.JSONL: "json", DatasetSource.PARQUET: "parquet", DatasetSource.CSV: "csv"}
    named = files[0] if len(files) == 1 else files
    return Examples(path=kinds[config.source], data_files=named, split="train", columns=form)


def from_folder(path: Path, folder: Path) -> str:
    """Return how a path is named from a folder: relative where both are below the working folder."""
    there, here = path.expanduser().resolve(), folder.resolve()
    cwd = Path.cwd().resolve()
    if there.is_relative_to(cwd) and here.is_relative_to(cwd):
        return os.path.relpath(there, here)
    return str(there)


def _own(rows: Iterable[Mapping[str, Any]], columns: list[str], remark: str) -> Examples:
    return Examples(
        path="json", data_files=OWN_FILE, split="train", columns=columns, rows=list(rows), remark=remark
    )
