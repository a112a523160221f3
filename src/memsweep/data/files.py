"""How are a person's own data read?

`dataset=jsonl|parquet|csv dataset.path=...` names a file, or a folder whose files of that kind are read in
the order of their names; `dataset=hub dataset.name=...` names a repository.  A trial reads the first
`MOST_ROWS` rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from memsweep.config.schema import DatasetConfig, DatasetSource
from memsweep.errors import DatasetError

# Their readers' libraries are imported where they read: a controller looks at files too (`ready.py`).

MOST_ROWS = (
    50_000  # a trial trains on a few dozen examples of even lengths: a larger sample has the same lengths
)

Rows = Iterator[Mapping[str, Any]]


def data_files(config: DatasetConfig) -> tuple[Path, ...]:
    """Return the files that `config` names, none for a repository.

    Raises:
        DatasetError: If there are none.
    """
    if config.path is None or config.source is DatasetSource.HUB:
        return ()
    try:
        return _named(Path(config.path).expanduser(), config.source)
    except (OSError, RuntimeError) as error:  # a folder that may not be listed, a name too long, ~nobody
        why = getattr(error, "strerror", None) or error
        raise DatasetError(
            f"dataset.path={config.path} cannot be read ({why}); it must be a {config.source} file, or a "
            "folder of such files"
        ) from error


def _named(path: Path, kind: DatasetSource) -> tuple[Path, ...]:
    if path.is_dir():
        # `glob` keeps silent about a folder that may not be listed.
        files = tuple(sorted(file for file in path.iterdir() if file.suffix == f".{kind}"))
        if not files:
            raise DatasetError(f"dataset.path={path} holds no file that ends in .{kind}")
        return files
    if not path.exists():
        raise DatasetError(f"dataset.path={path} is not there; the working folder is {Path.cwd()}")
    if not path.is_file():
        raise DatasetError(f"dataset.path={path} must be a {kind} file, or a folder of such files")
    return (path,)


def read_rows(config: DatasetConfig) -> list[dict[str, Any]]:
    """Return the rows of the files or of the repository, the first `MOST_ROWS` of them.

    Raises:
        DatasetError: If a file cannot be read as what it is said to be; the message names it.
    """
    return list(islice(stream_rows(config), MOST_ROWS))


def stream_rows(config: DatasetConfig) -> Iterator[dict[str, Any]]:
    """Yield all rows of the files or of the repository, read as far as they are taken.

    Raises:
        DatasetError: If a file cannot be read as what it is said to be; the message names it.
    """
    if config.source is DatasetSource.HUB:
        yield from (dict(row) for row in _hub(config))
        return
    read = READERS[config.source]
    for path in data_files(config):
        try:
            yield from map(dict, read(path))
        except RecursionError as error:
            raise DatasetError(f"{path} cannot be read as {config.source}: it is nested too deep") from error
        except (ValueError, OSError, csv.Error) as error:
            raise DatasetError(f"{path} cannot be read as {config.source}: {error}") from error


def _jsonl(path: Path) -> Rows:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number}: {error}") from error
                if not isinstance(row, dict):
                    raise ValueError(f"line {number}: an object is needed, got {type(row).__name__}")
                yield row


def _parquet(path: Path) -> Rows:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1_000):
            yield from batch.to_pylist()


def _csv(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=1):
            if None in row:
                raise ValueError(f"row {number} has more fields than the first line names")
            if "label" in row:
                word = str(row["label"]).strip().lower()
                row = {**row, "label": {"true": True, "1": True, "false": False, "0": False}.get(word, word)}
            yield row


def _hub(config: DatasetConfig) -> Rows:
    import datasets

    try:
        found = datasets.load_dataset(config.name, split=config.split)
    except Exception as error:
        # The library's errors share no class; all mean that there is nothing to train on.
        raise DatasetError(
            f"dataset.name={config.name} dataset.split={config.split} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    return iter(found)


READERS: Mapping[DatasetSource, Callable[[Path], Rows]] = {
    DatasetSource.JSONL: _jsonl,
    DatasetSource.PARQUET: _parquet,
    DatasetSource.CSV: _csv,
}
