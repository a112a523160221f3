"""Counts the tokens of all examples of the data, a thousand at a time: only their lengths are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from memsweep.config.schema import DatasetSource
from memsweep.errors import DatasetError
from memsweep.lengths.preparation import Counted
from memsweep.lengths.tokenized import counted, sequence_names
from memsweep.lengths.whose import Asked

CHUNK = 1_000
"""Rows that are tokenized together: enough for the tokenizer to use all cores, and some MB of text."""

OnRows = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The examples by their tokens.

    Attributes:
        counted: All that can be used, in the order of the data.
        names: What the sequences of an example are called.
        n_unusable: Rows that hold nothing in a column that is needed.
    """

    counted: Counted
    names: tuple[str, ...]
    n_unusable: int


def scan(asked: Asked, on_rows: OnRows | None = None) -> Scanned:
    """Return the lengths of all examples of the data that are asked for.

    Args:
        asked: Whose.
        on_rows: Called with the number of rows that were just counted.

    Raises:
        DatasetError: If the data lack a column, or a row holds something else than it must.
        ConfigError: If they are conversations, and nothing says how the model writes them.
    """
    from memsweep.data.embedded import embedded_rows
    from memsweep.data.files import MOST_ROWS, stream_rows
    from memsweep.data.rows import columns_for

    dataset, kind = asked.config.dataset, asked.config.trainer.data
    if dataset.source is DatasetSource.EMBEDDED:
        rows: Iterable[Mapping[str, Any]] = embedded_rows(kind, asked.config.seed)
        where, form = "the embedded data", columns_for(kind, next(iter(rows)), "the embedded data")
    else:
        where = dataset.name if dataset.source is DatasetSource.HUB else str(dataset.path)
        # A trial looks at so many rows, and takes the columns that any of them has.
        seen = dict.fromkeys(column for row in islice(stream_rows(dataset), MOST_ROWS) for column in row)
        rows, form = stream_rows(dataset), columns_for(kind, seen, where)
    return scan_rows(asked, rows, form, where, on_rows)


def scan_rows(
    asked: Asked,
    rows: Iterable[Mapping[str, Any]],
    form: Sequence[str],
    where: str,
    on_rows: OnRows | None = None,
) -> Scanned:
    """Return the lengths of these examples.

    Args:
        asked: Which trainer and tokenizer.
        rows: The data, read as far as they are counted.
        form: The columns that count.
        where: The data, for messages.
        on_rows: Called with the number of rows that were just counted.

    Raises:
        DatasetError, ConfigError: As `scan` does.
    """
    from memsweep.data.rows import checked
    from memsweep.model.folder import ModelPlace, require_template

    tokens: list[Any] = []
    prompts: list[Any] = []
    n_rows, n_usable = 0, 0
    for chunk in _chunks(rows):
        usable = checked(chunk, form, where, first=n_rows + 1)
        n_rows += len(chunk)
        if usable:
            if not n_usable:
                require_template(asked.config, ModelPlace("", None, asked.tokenizer), usable)
            found = counted(usable, form, asked.how, asked.tokenizer)
            tokens.append(found.tokens.astype(np.int32))
            prompts.append(found.prompts.astype(np.int32))
            n_usable += len(found)
        if on_rows is not None:
            on_rows(len(chunk))
    if not n_usable:
        raise DatasetError(f"{where} holds no example that can be used, of {n_rows:,} rows")
    return Scanned(
        counted=Counted(np.concatenate(tokens).astype(np.int64), np.concatenate(prompts).astype(np.int64)),
        names=sequence_names(form, asked.how.kind),
        n_unusable=n_rows - n_usable,
    )


def _chunks(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    waiting = iter(rows)
    while chunk := list(islice(waiting, CHUNK)):
        yield chunk
