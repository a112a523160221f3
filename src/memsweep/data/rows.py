"""What must a row hold, so that a trainer can train on it?

TRL takes text (standard format) or lists of messages (conversational format) under fixed column names; which
names depends on the kind of trainer.  This module knows the names, and says what is wrong in words.
Source: trl==1.16.0 docs, dataset_formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memsweep.config.schema import DataKind
from memsweep.errors import DatasetError

Row = dict[str, Any]

# For each kind the sets of columns that serve it; the first that the data has is taken.
FORMS: Mapping[DataKind, tuple[tuple[str, ...], ...]] = {
    DataKind.PROMPT_COMPLETION: (("prompt", "completion"), ("messages",), ("text",)),
    DataKind.PREFERENCE: (("prompt", "chosen", "rejected"), ("chosen", "rejected")),
    DataKind.UNPAIRED_PREFERENCE: (("prompt", "completion", "label"),),
    DataKind.PROMPT_ONLY: (("prompt",),),
}

# Who trains on which kind: for the sentence that says what the data would be good for.
TRAINERS: Mapping[DataKind, str] = {
    DataKind.PROMPT_COMPLETION: "trainer=sft",
    DataKind.PREFERENCE: "trainer=dpo or trainer=reward",
    DataKind.UNPAIRED_PREFERENCE: "trainer=kto",
    DataKind.PROMPT_ONLY: "trainer=grpo, trainer=rloo or trainer=online_dpo",
}


def columns_for(kind: DataKind, columns: Iterable[str], where: str) -> tuple[str, ...]:
    """Return the columns that a kind of trainer takes of the data.

    Args:
        kind: What a row must hold.
        columns: What the data has.
        where: The data, for the message.

    Raises:
        DatasetError: If no form fits; it lists what is there, what is missing and what would fit.
    """
    there = list(columns)
    for form in FORMS[kind]:
        if set(form) <= set(there):
            return form
    needed = "; or ".join(_missing(form, there) for form in FORMS[kind])
    fits = [TRAINERS[other] for other in DataKind if any(set(form) <= set(there) for form in FORMS[other])]
    advice = f"As it is, it fits {', '.join(fits)}" if fits else "Rename its columns"
    raise DatasetError(
        f"{where} has the columns {', '.join(sorted(there)) or '(none)'}; "
        f"{TRAINERS[kind]} needs {needed}. {advice}."
    )


def checked(rows: Sequence[Mapping[str, Any]], form: Sequence[str], where: str, first: int = 1) -> list[Row]:
    """Return the rows with the columns of `form` only, those that hold nothing left out.

    Args:
        rows: The data.
        form: What `columns_for` returned.
        where: The data, for the message.
        first: Number of the first row, for the message.

    Raises:
        DatasetError: If a value is not what its column must hold; it names the row.
    """
    usable = []
    for number, row in enumerate(rows, start=first):
        kept = {column: row.get(column) for column in form}
        if any(value is None or value in ("", []) for value in kept.values()):
            continue
        for column, value in kept.items():
            problem = _problem(column, value)
            if problem:
                raise DatasetError(f"{where}, row {number}: {column} {problem}")
        if "label" in kept:
            kept["label"] = bool(kept["label"])
        usable.append(kept)
    if usable:
        _check_one_format(usable, form, where)
    return usable


def length(row: Mapping[str, Any]) -> int:
    """Return the characters of all text in a row: what examples are ordered by, whatever the tokenizer."""
    return sum(_characters(value) for value in row.values())


def _missing(form: Sequence[str], there: Sequence[str]) -> str:
    absent = [column for column in form if column not in there]
    return f"{' and '.join(form)} ({' and '.join(absent)} missing)"


def _problem(column: str, value: Any) -> str | None:
    """Say in half a sentence what is wrong with a value, None when nothing is."""
    if column == "label":
        return None if value in (True, False) else f"must be true or false, got {value!r}"
    if isinstance(value, str):
        return None if column != "messages" else "must be a list of messages, got text"
    if not isinstance(value, list) or column == "text":
        return f"must be text{'' if column == 'text' else ' or a list of messages'}, got {_shown(value)}"
    for message in value:
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            return f"must hold messages with role and content, got {_shown(message)}"
        if not isinstance(message["content"], str):
            return f"must hold messages of text (images are not supported), got {_shown(message['content'])}"
    return None


def _check_one_format(rows: Sequence[Row], form: Sequence[str], where: str) -> None:
    for column in form:
        kinds = {type(row[column]) for row in rows}
        if len(kinds) > 1:
            raise DatasetError(f"{where}: {column} is text in some rows and messages in others; make it one")


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(len(message["content"]) for message in value)
    return 0


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
