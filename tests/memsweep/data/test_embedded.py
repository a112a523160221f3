from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from memsweep.config.schema import DataKind
from memsweep.data.documentation import LONGEST
from memsweep.data.embedded import embedded_documents, embedded_rows
from memsweep.data.rows import FORMS, checked
from memsweep.model.folder import model_place
from tiny import tiny_config

pytestmark = pytest.mark.usefixtures("shared_cache")


def test_the_same_seed_gives_the_same_rows() -> None:
    assert embedded_rows(DataKind.PREFERENCE, 1) == embedded_rows(DataKind.PREFERENCE, 1)


def test_another_seed_gives_another_order() -> None:
    assert embedded_rows(DataKind.PROMPT_ONLY, 1) != embedded_rows(DataKind.PROMPT_ONLY, 2)


def test_it_does_not_matter_whether_they_come_from_the_cache(own_cache: Path) -> None:
    first = embedded_rows(DataKind.PROMPT_COMPLETION, 0)

    assert list((own_cache / "data").iterdir()) != []
    assert embedded_rows(DataKind.PROMPT_COMPLETION, 0) == first


@pytest.mark.parametrize("kind", DataKind)
def test_every_kind_of_trainer_gets_rows_of_its_form(kind: DataKind) -> None:
    rows = embedded_rows(kind, 0)

    assert len(rows) > 2_000
    assert checked(rows, FORMS[kind][0], "embedded") == rows


def test_a_rejected_answer_is_never_the_chosen_one() -> None:
    rows = embedded_rows(DataKind.PREFERENCE, 0)

    assert [row for row in rows if row["chosen"] == row["rejected"]] == []


def test_nothing_is_longer_than_the_longest() -> None:
    assert max(len(document.text) for document in embedded_documents()) <= LONGEST


def test_half_of_the_unpaired_answers_are_good() -> None:
    labels = [row["label"] for row in embedded_rows(DataKind.UNPAIRED_PREFERENCE, 0)]

    assert sum(labels) == pytest.approx(len(labels) / 2, abs=1)


def test_lengths_are_mixed_so_that_truncation_and_packing_act() -> None:
    tokenizer = model_place(tiny_config(geometry={"vocab_size": 4096}).model).tokenizer
    rows = embedded_rows(DataKind.PROMPT_COMPLETION, 0)[::2]
    lengths = [
        len(tokenizer.apply_chat_template(row["prompt"] + row["completion"], return_dict=True)["input_ids"])
        for row in rows
    ]

    assert 150 <= statistics.median(lengths) <= 250
    assert statistics.quantiles(lengths, n=100)[98] > 1_024
