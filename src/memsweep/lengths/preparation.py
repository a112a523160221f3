"""What does a trainer make of an example's length?  The rules of its preparation that need only lengths.

SFT, DPO and KTO cut a sequence off, and leave an example out when its prompt alone fills the limit; reward
leaves out what is longer; of prompts that are answered in training, the limit takes what the answer leaves.
Source: trl==1.16.0 `_prepare_dataset` and the collators of each trainer; tests hold it against the trainers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsweep.config.schema import DataKind

DROPS_LONG = frozenset({"reward"})
"""Trainers that leave an example out when one of its sequences is longer than the limit, and cut none."""

CUTS = "bfd"
"""The strategy of packing that cuts what is longer than a row; the others go on in the next row."""

FIELDS = (
    "max_length",
    "truncation_mode",
    "completion_only_loss",
    "assistant_only_loss",
    "packing",
    "packing_strategy",
)
"""Fields of a trainer's arguments that decide what it makes of a length."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What a trainer with its arguments does to an example by its length.

    Attributes:
        kind: What a row of the data holds.
        max_length: The limit in force; None when there is none.
        cuts: It cuts what is longer.
        drops_long: It leaves out what is longer, and cuts nothing.
        needs_answer: It leaves out an example whose prompt alone fills the limit.
        answer_tokens: What is generated after each prompt, where the limit is for both together; else 0.
        packing: The strategy by which it packs; None when it does not.
        can_pack: It could.
        remarks: What is not as in training, one sentence each.
    """

    kind: DataKind
    max_length: int | None
    cuts: bool = True
    drops_long: bool = False
    needs_answer: bool = True
    answer_tokens: int = 0
    packing: str | None = None
    can_pack: bool = False
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """Examples by their tokens.

    Attributes:
        tokens: (n_examples, n_sequences): an example is one sequence, or the two sides of a preference.
        prompts: (n_examples,): the tokens that a sequence begins with and nothing is learned from.
    """

    tokens: Ints
    prompts: Ints

    def __len__(self) -> int:
        return len(self.prompts)


def stays(counted: Counted, how: Preparation, max_length: int | None) -> NDArray[np.bool_]:
    """Tell of each example, (n_examples,), whether it is trained on at all under a limit.

    Args:
        counted: The examples, whole.
        how: What the trainer does.
        max_length: The limit; None for none.
    """
    if max_length is not None and how.drops_long:
        return np.asarray((counted.tokens <= max_length).all(axis=1))
    if max_length is not None and how.needs_answer:
        return np.asarray(counted.prompts < room(how, max_length))
    return np.ones(len(counted), dtype=np.bool_)


def kept(counted: Counted, how: Preparation, max_length: int | None) -> Ints:
    """Return the tokens, (n_left, n_sequences), that are trained on under a limit.

    Args:
        counted: The examples, whole.
        how: What the trainer does.
        max_length: The limit; None for none.
    """
    left = counted.tokens[stays(counted, how, max_length)]
    return left if max_length is None or not how.cuts else np.minimum(left, room(how, max_length))


def room(how: Preparation, max_length: int) -> int:
    """Return how long a sequence of the data may be under a limit."""
    return max(max_length - how.answer_tokens, 0)


def preparation(
    trainer: str, kind: DataKind, arguments: Mapping[str, Any], completion_tokens: int, *, makes_room: bool
) -> Preparation:
    """Return what a trainer does.

    Args:
        trainer: Its name.
        kind: What a row of the data holds.
        arguments: Those of `FIELDS` that its class has, as they are in force.
        completion_tokens: What it generates for a prompt; 0 when it generates nothing.
        makes_room: Its limit is for prompt and completion together.
    """
    is_online = kind is DataKind.PROMPT_ONLY
    has_limit = makes_room if is_online else "max_length" in arguments
    packing = arguments.get("packing_strategy") if arguments.get("packing") else None
    learns_anyway = (
        is_online
        or packing is not None
        or arguments.get("completion_only_loss") is False
        or arguments.get("truncation_mode") == "keep_end"
    )
    return Preparation(
        kind=kind,
        max_length=arguments.get("max_length") if has_limit else None,
        cuts=trainer not in DROPS_LONG and packing in (None, CUTS),
        drops_long=trainer in DROPS_LONG,
        needs_answer=not learns_anyway and trainer not in DROPS_LONG,
        answer_tokens=completion_tokens if makes_room else 0,
        packing=packing,
        can_pack="packing_strategy" in arguments,
        remarks=tuple(_remarks(arguments, has_limit=has_limit)),
    )


def _remarks(arguments: Mapping[str, Any], *, has_limit: bool) -> list[str]:
    found = []
    if arguments.get("assistant_only_loss"):
        found.append(
            "with assistant_only_loss the trainer also leaves out examples whose assistant's words all lie "
            "beyond the limit; here they count as kept"
        )
    if not has_limit:
        found.append(
            "this trainer has no max_length: prompts are as long as the data have them, and the table says "
            "what shortening them would cost"
        )
    return found
