from __future__ import annotations

import pytest

from memsweep.errors import ConfigError
from memsweep.trainers.build import RECIPES, recipe_of


def test_every_trainer_of_trl_that_we_name_is_there() -> None:
    assert list(RECIPES) == ["dpo", "grpo", "kto", "online_dpo", "reward", "rloo", "sft"]


def test_an_unknown_trainer_lists_them() -> None:
    with pytest.raises(ConfigError, match=r"must be one of dpo, grpo, .*, got ppo"):
        recipe_of("ppo")
