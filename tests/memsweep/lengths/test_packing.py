from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from trl import pack_dataset

from memsweep.lengths import packing
from memsweep.lengths.packing import STRATEGIES, packed


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("max_length", [7, 64, 100])
def test_rows_and_tokens_are_those_of_trl(strategy: str, max_length: int) -> None:
    # More than TRL packs together, some longer than a row, some a whole number of rows.
    lengths = np.random.default_rng(0).geometric(0.02, size=1_300)
    lengths[:3] = [max_length, 2 * max_length, 1]
    data = Dataset.from_dict({"input_ids": [[1] * n for n in lengths.tolist()]})

    rows = pack_dataset(data, max_length, strategy)["input_ids"]
    found = packed(lengths, max_length, strategy)

    assert (found.n_rows, found.tokens) == (len(rows), sum(map(len, rows)))


def test_full_rows_are_full() -> None:
    found = packed(np.array([6, 4, 7, 3]), 10, "bfd")

    assert (found.n_rows, found.filled_share, found.kept_share) == (2, 1.0, 1.0)


def test_what_is_cut_is_lost() -> None:
    assert packed(np.array([20, 10]), 10, "bfd").kept_share == pytest.approx(2 / 3)
    assert packed(np.array([20, 10]), 10, "bfd_split").kept_share == 1


def test_of_very_many_examples_parts_stand_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.random.default_rng(0).integers(1, 40, size=20_000)
    everything = packed(lengths, 64, "bfd")
    monkeypatch.setattr(packing, "MOST_PARTS", 5)

    part = packed(lengths, 64, "bfd")

    assert part.n_examples == 5_000
    assert part.filled_share == pytest.approx(everything.filled_share, rel=0.01)
