from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsweep.lengths.preparation import Counted, Preparation, kept, preparation, stays
from tiny import DATA

TWO = Counted(np.array([[10, 4], [6, 9], [3, 3]]), np.array([2, 5, 1]))
ONE = Counted(np.array([[10], [6], [3]]), np.array([2, 5, 1]))


def how(trainer: str, *, tokens: int = 0, **arguments: Any) -> Preparation:
    return preparation(
        trainer, DATA[trainer], {"max_length": 5, **arguments}, tokens, makes_room=trainer == "online_dpo"
    )


@pytest.mark.parametrize("trainer", ["sft", "kto"])
def test_a_long_sequence_is_cut_and_one_without_room_for_an_answer_left_out(trainer: str) -> None:
    assert stays(ONE, how(trainer), 5).tolist() == [True, False, True]
    assert kept(ONE, how(trainer), 5).tolist() == [[5], [3]]


def test_both_sides_of_a_preference_are_cut() -> None:
    assert kept(TWO, how("dpo"), 5).tolist() == [[5, 4], [3, 3]]


def test_reward_leaves_out_what_is_longer_and_cuts_nothing() -> None:
    assert kept(TWO, how("reward"), 9).tolist() == [[6, 9], [3, 3]]


def test_no_limit_keeps_everything() -> None:
    for trainer in ("sft", "reward"):
        assert kept(ONE, how(trainer), None).sum() == 19


@pytest.mark.parametrize(
    "arguments",
    [{"completion_only_loss": False}, {"truncation_mode": "keep_end"}],
    ids=lambda one: next(iter(one)),
)
def test_where_something_is_learned_anyway_no_example_is_left_out(arguments: dict[str, Any]) -> None:
    assert kept(ONE, how("sft", **arguments), 5).tolist() == [[5], [5], [3]]


@pytest.mark.parametrize(("strategy", "tokens"), [("bfd", 13), ("bfd_split", 19), ("wrapped", 19)])
def test_packing_cuts_only_where_the_strategy_does(strategy: str, tokens: int) -> None:
    assert kept(ONE, how("sft", packing=True, packing_strategy=strategy), 5).sum() == tokens


def test_a_strategy_without_packing_is_none() -> None:
    assert how("sft", packing=False, packing_strategy="bfd").packing is None


def test_the_answer_that_is_generated_takes_its_room_from_the_prompt() -> None:
    prompts = Counted(np.array([[10], [3]]), np.array([0, 0]))

    assert kept(prompts, how("online_dpo", tokens=1), 5).tolist() == [[4], [3]]


def test_a_trainer_without_a_limit_says_so() -> None:
    assert how("grpo", tokens=8).max_length is None
    assert "has no max_length" in how("grpo").remarks[0]
