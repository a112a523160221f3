from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers.trainer_pt_utils import get_length_grouped_indices

from memsweep.lengths.padding import batch_slots, grouped_order, padded


def test_a_batch_is_as_wide_as_its_longest() -> None:
    assert batch_slots(np.array([3, 5, 2, 2, 9]), 2) == 10 + 4 + 9


@pytest.mark.parametrize(("n_examples", "batch"), [(1_003, 4), (1_003, 1), (37, 8), (3, 8)])
def test_examples_are_grouped_as_transformers_groups_them(n_examples: int, batch: int) -> None:
    lengths = np.random.default_rng(1).integers(1, 50, size=n_examples)
    order = torch.randperm(n_examples, generator=torch.Generator().manual_seed(0)).numpy()

    theirs = get_length_grouped_indices(lengths.tolist(), batch, generator=torch.Generator().manual_seed(0))

    assert grouped_order(lengths, batch, order).tolist() == theirs


def test_equal_lengths_and_single_examples_have_no_padding() -> None:
    assert padded(np.full((10, 1), 7), 4, seed=0).random_share == 0
    assert padded(np.arange(1, 11)[:, None], 1, seed=0).random_share == 0


def test_both_sides_of_a_preference_are_as_wide_as_the_longer() -> None:
    assert padded(np.array([[2, 8]]), 1, seed=0).random_share == pytest.approx(6 / 16)


def test_grouping_leaves_less_padding_and_larger_batches_have_more() -> None:
    tokens = np.random.default_rng(0).geometric(0.01, size=(2_000, 1))
    small, large = padded(tokens, 2, seed=0), padded(tokens, 16, seed=0)

    assert 0 < small.grouped_share < small.random_share < large.random_share
    assert large.grouped_share < large.random_share / 2


def test_the_same_seed_gives_the_same_figures() -> None:
    tokens = np.random.default_rng(0).geometric(0.01, size=(500, 1))

    assert padded(tokens, 4, seed=3) == padded(tokens, 4, seed=3) != padded(tokens, 4, seed=4)
