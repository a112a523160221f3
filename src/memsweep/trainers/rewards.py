"""How are completions scored, for trainers that generate them?

A reward is chosen by name (`reward=...`); its arguments come from the configuration.  TRL calls it with lists
of equal length and takes one number for each completion.  A reward model is given as its place, and TRL loads
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from memsweep.config.schema import RewardConfig
from memsweep.errors import ConfigError

Reward = Callable[..., list[float]]


def reward(config: RewardConfig) -> Reward | str:
    """Return what a trainer's `reward_funcs` takes.

    Raises:
        ConfigError: If there is no such reward, or its arguments are not what it takes.
    """
    make = REWARDS.get(config.name)
    if make is None:
        raise ConfigError(f"reward.name must be one of {', '.join(REWARDS)}, got {config.name}")
    try:
        return make(**config.arguments)
    except (TypeError, ValueError, re.error) as error:
        raise ConfigError(f"reward={config.name}: {error}") from error


def length(target_characters: int = 200) -> Reward:
    """Return a reward that is 0 at a length and falls by 1 with each `target_characters` away from it."""
    if target_characters < 1:
        raise ValueError(f"target_characters must be at least 1, got {target_characters}")

    def length_reward(completions: list[Any], **_: Any) -> list[float]:
        return [-abs(len(_text(entry)) - target_characters) / target_characters for entry in completions]

    return length_reward


def regex(pattern: str) -> Reward:
    """Return a reward that is 1 where `pattern` is found in a completion, else 0."""
    compiled = re.compile(pattern, re.DOTALL)

    def regex_reward(completions: list[Any], **_: Any) -> list[float]:
        return [1.0 if compiled.search(_text(entry)) else 0.0 for entry in completions]

    return regex_reward


def answer_format(opening: str = "<answer>", closing: str = "</answer>") -> Reward:
    """Return a reward of one half for each of two marks, where they stand in the right order."""

    def format_reward(completions: list[Any], **_: Any) -> list[float]:
        scores = []
        for entry in completions:
            before, found, after = _text(entry).partition(opening)
            scores.append(0.5 * bool(found) + 0.5 * ((closing in after) if found else False))
            del before
        return scores

    return format_reward


def distinct_words() -> Reward:
    """Return a reward that is the share of a completion's words that differ from each other."""

    def distinct_words_reward(completions: list[Any], **_: Any) -> list[float]:
        words = [_text(entry).split() for entry in completions]
        return [len(set(entry)) / max(1, len(entry)) for entry in words]

    return distinct_words_reward


def model(path: str) -> str:
    """Return the place of a reward model: a folder or a repository's name."""
    if not path:
        raise ValueError("path must name a folder or a repository")
    return path


REWARDS: Mapping[str, Callable[..., Reward | str]] = {
    "length": length,
    "regex": regex,
    "format": answer_format,
    "distinct_words": distinct_words,
    "model": model,
}


def _text(completion: Any) -> str:
    """Return a completion's text: it is text itself, or a list of messages of which the last counts."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])
