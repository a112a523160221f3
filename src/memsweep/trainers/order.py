"""From source examples to a trainer's prepared rows, and the order in which those enter training.

The trainer prepares the probe and, behind it, the longest examples of the data in one go, so that both are
prepared alike.  Which row is which is known by where it came from: preparation may drop rows, or pack them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset, concatenate_datasets

from memsweep.data.rows import length
from memsweep.errors import ConfigError
from memsweep.measure.prepared import IGNORED
from memsweep.measure.schedule import Block
from memsweep.technique.work import ACCUMULATION, MICRO
from memsweep.trainers.arguments import longer
from memsweep.trainers.recipe import Recipe, TrialRequest

SOURCE = "source_example"
"""The column that says which source example a prepared row was made of."""


def training_data(recipe: Recipe, request: TrialRequest, arguments: Any) -> Dataset:
    """Return what the trainer prepares.

    Packed rows are all about as long as they may be, so packing needs no longest examples, and would mix
    them with the others.
    """
    if packs(arguments):
        return request.data
    data = request.data
    if request.longest is not None:
        data = concatenate_datasets([data, request.longest])
    if hasattr(recipe.trainer_class, "_prepare_dataset"):
        data = data.add_column(SOURCE, list(range(len(data))))
    return data


def packs(arguments: Any) -> bool:
    """Tell whether a trainer with these arguments joins examples into rows."""
    return bool(getattr(arguments, "packing", False))


def known_rows(trainer: Any, request: TrialRequest) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which of the prepared rows are the probe's, in order, and which are the longest, as such."""
    prepared, n_examples = trainer.train_dataset, len(request.data)
    if SOURCE in prepared.column_names:
        rows = [place for place, source in enumerate(prepared[SOURCE]) if source < n_examples]
    else:
        rows = list(range(len(prepared) if packs(trainer.args) else n_examples))
    lengths = row_lengths(prepared)
    longest = sorted(range(len(prepared)), key=lambda place: -lengths[place])
    return tuple(rows), tuple(longest[: len(request.longest or rows)])


def row_lengths(prepared: Dataset) -> list[int]:
    """Return how long each row is: in tokens where it holds tokens, else in characters."""
    columns = [name for name in prepared.column_names if name.endswith("_ids")]
    if not columns:
        return [length(row) for row in prepared]
    return [sum(map(len, row)) for row in zip(*(prepared[name] for name in columns), strict=True)]


def block_of(built_args: Any, recipe: Recipe) -> Block:
    """Return the fewest rows that fill whole optimizer steps.

    A trainer with groups of completions takes some prompts, generates for all of them, and trains on the
    completions in `steps_per_generation` parts, `num_iterations` times.  Source: trl==1.16.0 GRPOTrainer
    `_get_train_sampler`, `_prepare_inputs`.
    """
    micro, accumulation = getattr(built_args, MICRO), getattr(built_args, ACCUMULATION)
    if recipe.generations_field is None:
        return Block(micro * accumulation * built_args.world_size)
    prompts = built_args.generation_batch_size // getattr(built_args, recipe.generations_field)
    parts = built_args.steps_per_generation * built_args.num_iterations
    together = math.lcm(parts, accumulation)
    return Block(prompts * together // parts, together // accumulation)


class _InOrder:
    """A sampler that gives rows in the order that is wanted.

    Args:
        places: The trainer's own sampler, of places in that order.
        order: The row of each place.
    """

    def __init__(self, places: Any, order: Sequence[int]) -> None:
        self._places, self._order = places, order

    def __iter__(self) -> Iterator[int]:
        return (self._order[place] for place in self._places)

    def __len__(self) -> int:
        return len(self._places)


def prepared_class(trainer_class: Any, study: Mapping[str, Any], n_examples: int) -> Any:
    """Return a trainer class that takes rows in `row_order`, and refuses to train on nothing.

    TRL would go on: with no rows training ends without a step, or in a step that cannot concatenate nothing;
    rows of which no token is a label train with a loss of 0.  Source: seen with trl==1.16.0.

    Args:
        trainer_class: A trainer of TRL's.
        study: `trainer.arguments`.
        n_examples: Source examples of the probe: what stands behind them does not make up for them.
    """

    class Ordered(trainer_class):  # type: ignore[misc]  # TRL is not followed by the type checker
        row_order: Sequence[int] | None = None

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            if self.row_order is None:
                return super()._get_train_sampler(train_dataset)
            return _InOrder(super()._get_train_sampler(range(len(self.row_order))), self.row_order)

    class Refusing(Ordered):
        def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, *rest: Any) -> Any:
            rows = super()._prepare_dataset(dataset, processing_class, args, *rest)
            if not _has_labels(rows, n_examples):
                n_given = min(len(dataset), n_examples)
                raise ConfigError(_nothing_left(trainer_class.__name__, n_given, args.max_length, study))
            return rows

    found = Refusing if hasattr(trainer_class, "_prepare_dataset") else Ordered
    found.__name__, found.__qualname__ = trainer_class.__name__, trainer_class.__qualname__
    return found


def _has_labels(rows: Any, n_examples: int) -> bool:
    if len(rows) and SOURCE in rows.column_names:
        rows = rows.select([place for place, source in enumerate(rows[SOURCE]) if source < n_examples])
    if len(rows) and "labels" in rows.column_names:
        return any(label != IGNORED for labels in rows["labels"] for label in labels)
    return bool(len(rows))


def _nothing_left(trainer: str, n_examples: int, max_length: int | None, study: Mapping[str, Any]) -> str:
    kept = f"{trainer} keeps none of the {n_examples} examples"
    if max_length is None:
        return f"{kept}: none has a token that is to be learned"
    return (
        f"{kept}: what is to be learned lies beyond max_length={max_length} in each; "
        f"type {longer(study, 2 * max_length)}"
    )
