"""How are completions scored in the exported folder?  A module of its own, or the place of a reward model."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

from memsweep.config.schema import RewardConfig
from memsweep.export.examples import from_folder
from memsweep.trainers import rewards

OWN_MODULE, OWN_FUNCTION = "rewards", "reward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What a trainer's `reward_funcs` is given.

    Attributes:
        module: The text of `rewards.py`; None when a model scores.
        model: The reward model's place; None when a function scores.
    """

    module: str | None
    model: str | None


def scores(config: RewardConfig, folder: Path) -> Scores:
    """Return how completions are scored.

    Args:
        config: The reward that the trial had.
        folder: The folder that is exported to.

    Raises:
        ConfigError: If there is no such reward.
    """
    found = rewards.reward(config)
    if isinstance(found, str):
        is_here = Path(found).expanduser().exists()
        return Scores(module=None, model=from_folder(Path(found), folder) if is_here else found)
    return Scores(module=_module(config), model=None)


def _module(config: RewardConfig) -> str:
    make = rewards.REWARDS[config.name]
    parts = [inspect.getsource(part) for part in (make, rewards._text)]
    uses_patterns = any(re.search(r"\bre\.", part) for part in parts)
    words = ", ".join(f"{name}={value!r}" for name, value in config.arguments.items())
    lines = [
        '"""How completions are scored.  Put your own here: lists in, one number a completion out."""',
        "",
        "from __future__ import annotations",
        "",
        *(["import re"] if uses_patterns else []),
        "from collections.abc import Callable",
        "from typing import Any",
        "",
        "Reward = Callable[..., list[float]]",
        "",
        "",
        "\n\n".join(parts).rstrip(),
        "",
        "",
        f"{OWN_FUNCTION} = {make.__name__}({words})",
        "",
    ]
    return "\n".join(lines)
