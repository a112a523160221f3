"""What is known of the lengths of some data: one plain table, which text, picture, JSON and report show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsweep.errors import ConfigError
from memsweep.lengths.packing import Packed
from memsweep.lengths.padding import Padded


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The sequences of one kind: `text`, or one side of a preference.

    Attributes:
        name: What they are made of.
        n_sequences: How many.
        tokens: Their tokens, nothing left out.
        shortest: Tokens of the shortest.
        longest: Tokens of the longest.
        percentiles: Percent to the least length that so many of them do not exceed.
    """

    name: str
    n_sequences: int
    tokens: int
    shortest: int
    longest: int
    percentiles: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """One bar of the distribution.

    Attributes:
        low: The least tokens in it.
        high: The most.
        n_sequences: How many sequences are of such a length.
    """

    low: int
    high: int
    n_sequences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a limit would leave.

    Attributes:
        max_length: The limit.
        why: Why it is in the table.
        n_whole: Examples that are trained on whole.
        n_cut: Examples that are cut.
        n_left_out: Examples that are not trained on at all.
        tokens_kept: Tokens that are trained on.
        kept_share: Those of all.
    """

    max_length: int
    why: tuple[str, ...]
    n_whole: int
    n_cut: int
    n_left_out: int
    tokens_kept: int
    kept_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """What is known of the lengths of some data.

    Attributes:
        data: What reports call the data.
        trainer: Whose preparation it is.
        model: Whose tokenizer it is.
        n_examples: Examples that can be used.
        n_unusable: Rows that hold nothing in a column that is needed.
        tokens: Tokens of all sequences, nothing left out.
        max_length: The limit in force; None when there is none.
        tokens_kept: Tokens that are trained on under it.
        parts: The sequences by kind.
        distribution: All sequences by length.
        limits: What limits would leave, the lowest first.
        padding: The padding of batches under the limit in force.
        packing: What packing makes of them; empty for trainers that cannot.
        remarks: What a reader must know, one sentence each.
    """

    data: str
    trainer: str
    model: str
    n_examples: int
    n_unusable: int
    tokens: int
    max_length: int | None
    tokens_kept: int
    parts: tuple[Part, ...]
    distribution: tuple[Bin, ...]
    limits: tuple[Limit, ...]
    padding: tuple[Padded, ...]
    packing: tuple[Packed, ...]
    remarks: tuple[str, ...]

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data, one key an attribute."""
        return dataclasses.asdict(self)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Lengths:
        """Return what `to_mapping` made `data` from.

        Raises:
            ConfigError: If it is not that.
        """
        facts = dict(data)
        kinds: Mapping[str, Any] = {
            "parts": Part,
            "distribution": Bin,
            "limits": Limit,
            "padding": Padded,
            "packing": Packed,
        }
        try:
            for name, kind in kinds.items():
                facts[name] = tuple(_made(kind, node) for node in facts[name])
            facts["remarks"] = tuple(facts["remarks"])
            return cls(**facts)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"not a table of lengths: {error}") from error


def _made(kind: Any, node: Mapping[str, Any]) -> Any:
    return kind(
        **{
            key: tuple(value) if isinstance(value, Sequence) and key == "why" else value
            for key, value in node.items()
        }
    )
