"""Trainers that are about to take their first step, for tests of what is read back from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from transformers import TrainerCallback

from memsweep.config.schema import TrialConfig
from memsweep.machine import Device
from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built, build
from memsweep.trainers.recipe import TrialRequest
from memsweep.trial.data import trial_request
from tiny import share_cache, tiny_config


class _Begun(Exception):
    """Training has begun."""


class _AtBegin(TrainerCallback):
    def on_train_begin(self, *_: Any, **__: Any) -> None:
        raise _Begun


def request_of(config: TrialConfig, settings: Settings, folder: Path) -> TrialRequest:
    """Return what a trainer on the processor is built from, the probe's examples alone."""
    return replace(trial_request(config, settings, Device.CPU, folder)[0], longest=None)


def built_from(config: TrialConfig, settings: Settings, folder: Path) -> Built:
    """Return the trainer that the trial asks for, rules aside, as if it were the first of its process."""
    AcceleratorState._reset_state(reset_partial_state=True)  # it keeps the precision of an earlier trainer
    return build(request_of(config, settings, folder))


def begin(config: TrialConfig, settings: Settings, folder: Path) -> Built:
    """Return the trainer that the trial asks for, as it is before its first step."""
    built = built_from(config, settings, folder)
    callback = _AtBegin()
    built.trainer.args.max_steps = 4
    built.trainer.add_callback(callback)
    with pytest.raises(_Begun):
        built.trainer.train()
    built.trainer.remove_callback(callback)
    return built


def begun(factory: pytest.TempPathFactory, trainer: str = "sft", /, **seams: Mapping[str, Any]) -> Built:
    """Return a tiny trainer with these settings, as it is before its first step."""
    with cache_of(factory):
        return begin(tiny_config(trainer), Settings(**seams), factory.mktemp(trainer))


@contextmanager
def cache_of(factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use the cache folder that all tests share, outside a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        share_cache(factory, patch)
        yield
