from __future__ import annotations

import pytest

from memsweep.config.schema import RewardConfig
from memsweep.errors import ConfigError
from memsweep.trainers.rewards import reward


def score(name: str, completion: object, **arguments: object) -> float:
    function = reward(RewardConfig(name=name, arguments=arguments))
    assert callable(function)
    return function(prompts=["p"], completions=[completion], completion_ids=[[1]])[0]


def test_a_length_is_best_at_its_target() -> None:
    assert score("length", "x" * 10, target_characters=10) == 0
    assert score("length", "x" * 20, target_characters=10) == -1


def test_messages_are_scored_by_their_text() -> None:
    assert score("length", [{"role": "assistant", "content": "x" * 10}], target_characters=10) == 0


def test_a_pattern_is_found_or_not() -> None:
    assert score("regex", "done.", pattern=r"\.$") == 1
    assert score("regex", "done", pattern=r"\.$") == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("<answer>4</answer>", 1), ("<answer>4", 0.5), ("</answer><answer>", 0.5), ("4", 0)],
)
def test_each_mark_of_a_format_counts_half(text: str, expected: float) -> None:
    assert score("format", text) == expected


def test_repeated_words_count_once() -> None:
    assert score("distinct_words", "a a b") == pytest.approx(2 / 3)
    assert score("distinct_words", "") == 0


def test_a_reward_model_is_its_place() -> None:
    assert reward(RewardConfig(name="model", arguments={"path": "/my/model"})) == "/my/model"


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("nonesuch", {}, "reward.name must be one of length, regex"),
        ("regex", {"pattern": "("}, "reward=regex: "),
        ("length", {"target": 3}, "reward=length: .*target"),
        ("model", {"path": ""}, "reward=model: path must name"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        reward(RewardConfig(name=name, arguments=arguments))
