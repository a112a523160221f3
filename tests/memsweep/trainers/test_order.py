from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset

from memsweep.errors import ConfigError
from memsweep.measure.prepared import IGNORED
from memsweep.trainers.order import prepared_class


class Trainer:
    """Prepares rows as TRL's trainers do."""

    def __init__(self, rows: list[dict[str, Any]], max_length: int | None = 4) -> None:
        self.train_dataset = self._prepare_dataset(
            Dataset.from_list(rows), None, SimpleNamespace(max_length=max_length)
        )

    def _prepare_dataset(self, dataset: Dataset, processing_class: Any, args: Any, *rest: Any) -> Dataset:
        return dataset.filter(lambda row: args.max_length is None or row["length"] <= args.max_length)


def test_preparation_that_keeps_something_is_left_alone() -> None:
    trainer = prepared_class(Trainer, {}, 2)([{"length": 3}, {"length": 5}])

    assert len(trainer.train_dataset) == 1
    assert (type(trainer).__name__, isinstance(trainer, Trainer)) == ("Trainer", True)


@pytest.mark.parametrize("rows", [[{"length": 5}], [{"length": 3, "labels": [IGNORED, IGNORED]}]])
def test_preparation_that_leaves_nothing_to_learn_is_refused(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(ConfigError) as error:
        prepared_class(Trainer, {}, 1)(rows)
    assert str(error.value) == (
        "Trainer keeps none of the 1 examples: what is to be learned lies beyond max_length=4 in each; "
        "type technique/truncation=max_length technique.truncation.max_length=8"
    )
    with pytest.raises(ConfigError, match=r"type trainer\.arguments\.max_length=8$"):
        prepared_class(Trainer, {"max_length": 4}, 1)(rows)


def test_rows_without_labels_are_refused_without_blaming_a_limit() -> None:
    with pytest.raises(
        ConfigError, match="keeps none of the 1 examples: none has a token that is to be learned"
    ):
        prepared_class(Trainer, {}, 1)([{"length": 3, "labels": [IGNORED]}], None)
