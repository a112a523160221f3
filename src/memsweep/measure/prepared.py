"""What do a trainer's prepared rows hold, before anything is trained?

The rows are collated as they will be in training, and counted as they will be there.  Nothing goes through a
model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from memsweep.measure.meter import pads_ends
from memsweep.measure.tokens import count

IGNORED = -100
"""The label of a token that is not to be learned.  Source: torch==2.13.0 cross_entropy ignore_index."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What some prepared rows hold.

    Attributes:
        tokens: Tokens that a pass over them trains on.
        label_tokens: Those of them that the loss is about; None where the loss is not about tokens.
        mean_length: Tokens of the sequence that a token stands in, as a mean over tokens: attention's work
            grows with it.
    """

    tokens: int
    label_tokens: int | None = None
    mean_length: float = 0.0

    @property
    def label_share(self) -> float | None:
        """The share of tokens that the loss is about."""
        return None if self.label_tokens is None or not self.tokens else self.label_tokens / self.tokens


def prepared(trainer: Any, rows: Sequence[int]) -> Prepared:
    """Return what the rows hold, from the rows as collated.

    Args:
        trainer: Of a kind that trains on its data's own text; what others generate is not there yet.
        rows: Indices of its prepared data.
    """
    data, collate = trainer.train_dataset, trainer.data_collator
    micro = trainer.args.per_device_train_batch_size
    trainer._set_signature_columns_if_needed()
    wanted = trainer._signature_columns or data.column_names
    data = data.select(rows).select_columns([name for name in data.column_names if name in wanted])
    tokens, squares = 0, 0
    labels: list[int | None] = []
    for first in range(0, len(data), micro):
        batch: Mapping[str, Any] = collate([data[i] for i in range(first, min(first + micro, len(data)))])
        tokens += int(count(batch, pads_ends=pads_ends(trainer))[0])
        squares += sum(n * n for n in sequence_lengths(batch))
        labels.append(label_tokens(batch))
    known = [number for number in labels if number is not None]
    return Prepared(tokens, sum(known) if known else None, squares / tokens if tokens else 0.0)


def sequence_lengths(batch: Mapping[str, Any]) -> list[int]:
    """Return the tokens of each sequence of a batch whose tokens see each other."""
    ids, mask, positions = batch["input_ids"], batch.get("attention_mask"), batch.get("position_ids")
    if isinstance(mask, torch.Tensor) and mask.shape == ids.shape:
        return [int(n) for n in (mask != 0).sum(dim=1)]
    if isinstance(positions, torch.Tensor) and positions.shape == ids.shape:
        found = []
        for row in positions:
            starts = [*(row == 0).nonzero()[:, 0].tolist(), len(row)]
            found += [last - first for first, last in itertools.pairwise(starts)]
        return found
    return [ids.shape[1]] * ids.shape[0]


def label_tokens(batch: Mapping[str, Any]) -> int | None:
    """Return the tokens of a batch that the loss is about, None where it is about sequences.

    A sequence's first token is predicted by nothing, so its label does not count; where sequences lie end to
    end, the collator has masked it.
    """
    labels, mask = batch.get("labels"), batch.get("completion_mask")
    if isinstance(labels, torch.Tensor) and labels.dim() == 2:
        return int((labels[:, 1:] != IGNORED).sum())
    return int((mask != 0).sum()) if isinstance(mask, torch.Tensor) else None
