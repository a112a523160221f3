from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset

from memsweep.data.probe import probe
from memsweep.errors import ConfigError
from memsweep.machine import Device
from memsweep.model.folder import model_place
from memsweep.technique.settings import Settings
from memsweep.trainers.build import RECIPES, build, recipe_of
from memsweep.trainers.recipe import TrialRequest
from tiny import share_cache, tiny_config


def test_every_trainer_of_trl_that_we_name_is_there() -> None:
    assert list(RECIPES) == ["dpo", "grpo", "kto", "online_dpo", "reward", "rloo", "sft"]


def test_an_unknown_trainer_lists_them() -> None:
    with pytest.raises(ConfigError, match=r"must be one of dpo, grpo, .*, got ppo"):
        recipe_of("ppo")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainer", "recomputes", "asked", "layer"),
    [
        ("grpo", True, {}, "DynamicLayer"),
        ("grpo", True, {"cache_implementation": "static"}, "StaticLayer"),
        ("rloo", True, {"cache_implementation": "static"}, "StaticLayer"),
        ("online_dpo", False, {"cache_implementation": "static"}, "StaticLayer"),
        ("online_dpo", True, {"cache_implementation": "static"}, None),  # so a rule refuses it
    ],
)
def test_generation_uses_the_cache_that_is_asked_for(
    trainer: str,
    recomputes: bool,
    asked: dict[str, str],
    layer: str | None,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    share_cache(tmp_path_factory, monkeypatch)
    config = tiny_config(trainer)
    place = model_place(config.model)
    request = TrialRequest(
        config=config,
        settings=Settings(
            trainer={"activation_checkpointing|gradient_checkpointing": recomputes, "bf16": False, **asked}
        ),
        device=Device.CPU,
        model=place.name,
        revision=place.revision,
        tokenizer=place.tokenizer,
        data=Dataset.from_list(list(probe(config.dataset, config.trainer.data, 4, 0).rows)),
        folder=tmp_path,
    )
    built = build(request).trainer
    built.args.max_steps = 1
    found: set[str | None] = set()

    def look(module: Any, positional: Any, named: dict[str, Any]) -> None:
        # transformers 5.24 calls it cache, older ones past_key_values
        cache = named.get("cache", named.get("past_key_values"))
        if not torch.is_grad_enabled() and named.get("use_cache") is not None:
            found.add(None if cache is None else type(cache.layers[0]).__name__)

    built.model.register_forward_pre_hook(look, with_kwargs=True)
    built.train()

    assert (layer in found) is True
    assert found - {None, layer} == set()
