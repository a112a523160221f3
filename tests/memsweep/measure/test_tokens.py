from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from memsweep.measure.tokens import TokenCount, TokenCounter, count

PAD = 0


def test_a_mask_says_what_is_padding_whatever_the_ids_are() -> None:
    ids = torch.full((2, 4), PAD)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])

    assert _counted({"input_ids": ids, "attention_mask": mask}) == (6, 8)


def test_rows_laid_end_to_end_hold_no_padding() -> None:
    positions = torch.tensor([[0, 1, 2, 0, 1]])

    assert _counted({"input_ids": torch.full((1, 5), PAD), "position_ids": positions}) == (5, 5)


def test_zeros_at_the_end_of_the_positions_are_padding() -> None:
    positions = torch.tensor([[0, 1, 2, 0, 1, 0, 0, 0]])

    assert _counted({"input_ids": torch.full((1, 8), 7), "position_ids": positions}) == (5, 8)


def test_every_batch_of_trls_collator_is_counted_as_its_rows_are_long() -> None:
    lengths = [5, 17, 2, 31]
    rows = [{"input_ids": [PAD] * n, "labels": [PAD] * n} for n in lengths]
    for padding_free in (False, True):
        for multiple in (None, 8, 64):
            collate = DataCollatorForLanguageModeling(
                pad_token_id=PAD, padding_free=padding_free, pad_to_multiple_of=multiple
            )

            assert _counted(collate(rows))[0] == sum(lengths)


def test_what_says_nothing_of_padding_has_none() -> None:
    assert _counted({"input_ids": torch.ones(2, 3)}) == (6, 6)


class Model(torch.nn.Module):
    """A model whose forward is recomputed in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        return checkpoint(self.layer, self.embed(input_ids), use_reentrant=False).sum()


def test_only_what_is_trained_on_counts_and_only_once() -> None:
    model = Model()
    counter = TokenCounter(model)
    ids = torch.ones(2, 3, dtype=torch.long)

    with torch.no_grad():
        model(ids)
    model(ids).backward()
    model(input_ids=ids, attention_mask=torch.tensor([[1, 1, 0], [1, 0, 0]])).backward()

    assert counter.now() == TokenCount(tokens=9, slots=12)


def test_a_window_is_the_difference_of_its_edges() -> None:
    model = Model()
    counter = TokenCounter(model)
    ids = torch.ones(2, 3, dtype=torch.long)

    model(ids)
    before = counter.now()
    model(ids)
    model(ids)
    counter.close()
    model(ids)

    assert counter.now() - before == TokenCount(tokens=12, slots=12)


def _counted(batch: dict[str, torch.Tensor]) -> tuple[int, int]:
    tokens, slots = count(batch)
    return int(tokens), slots
