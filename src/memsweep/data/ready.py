"""Can the data be trained on?  Asked before anything starts, as far as that takes a moment.

A small file is read whole, as a trial will.  Of a large one the first rows are read: what is wrong further
down, or with all of it together, the first trial says.
"""

from __future__ import annotations

from itertools import islice

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.data.files import MOST_ROWS, data_files, stream_rows
from memsweep.data.rows import checked, columns_for
from memsweep.errors import DatasetError

SMALL_BYTES = 1 << 20
_FIRST_ROWS = 100


def require_data(config: DatasetConfig, kind: DataKind) -> None:
    """Raise if files of data are not there, cannot be read, or are not what a trainer needs.

    Args:
        config: The data.
        kind: What a row must hold.

    Raises:
        DatasetError: If so; a repository's data are not looked at.
    """
    if config.source in (DatasetSource.EMBEDDED, DatasetSource.HUB):
        return
    try:
        is_whole = sum(file.stat().st_size for file in data_files(config)) <= SMALL_BYTES
    except OSError as error:
        raise DatasetError(f"dataset.path={config.path} cannot be read ({error.strerror})") from error
    rows = list(islice(stream_rows(config), MOST_ROWS if is_whole else _FIRST_ROWS))
    if is_whole:
        where = str(config.path)
        columns = {column: None for row in rows for column in row}
        if not checked(rows, columns_for(kind, columns, where), where):
            raise DatasetError(f"{where} holds no example that can be used, of {len(rows):,} rows")
