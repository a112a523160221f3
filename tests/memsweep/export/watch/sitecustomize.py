"""Closes memsweep to an exported folder's training, and reads back what trains there as memsweep does.

Python imports this by itself where it is on the path.  The readings are imported while the door is open, just
before the model is loaded, and are out of reach of everybody else's imports again; where there is no
WATCH_FACTS the door only stays closed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

OURS = ("memsweep", "hydra_plugins")
HOOKED = ("transformers.trainer", "transformers.modeling_utils")


class Door(importlib.abc.MetaPathFinder):
    """Finds nothing of ours while it is closed, and tells when the modules are there that are watched."""

    def __init__(self) -> None:
        self.is_open = False
        self._is_asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        del path, target
        if name.partition(".")[0] in OURS and not self.is_open:
            raise ModuleNotFoundError(f"{name} is not there for what was exported", name=name)
        if name not in HOOKED or self._is_asking or "WATCH_FACTS" not in os.environ:
            return None
        self._is_asking = True
        try:
            spec: Any = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        execute = spec.loader.exec_module

        def watched(module: ModuleType) -> None:
            execute(module)
            _watch(module)

        spec.loader.exec_module = watched
        return spec

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let ours be imported, then forget that they were."""
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False
            for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
                del sys.modules[name]


DOOR = Door()
sys.meta_path.insert(0, DOOR)


class Readings:
    """What is read of one training; made before its model is loaded."""

    def __init__(self) -> None:
        with DOOR.opened():
            importlib.import_module("memsweep.trial.run")  # a trial's process has it before its start
            from memsweep.config.schema import trial_config
            from memsweep.measure.memory import HostMemory, Part
            from memsweep.readback.effective import effective
            from memsweep.technique.yaml_text import parse_yaml
            from memsweep.trainers.build import Built, recipe_of

            config: Any = parse_yaml(Path(os.environ["WATCH_CONFIG"]).read_text(encoding="utf-8"))
            asked = trial_config(config)
            recipe = recipe_of(asked.trainer.name)
        self._effective: Callable[[Any], Any] = lambda trainer: effective(
            Built(trainer, recipe, {}, True), asked
        )
        self._memory, self._parts = HostMemory(), Part
        self._settled_after = int(os.environ["WATCH_SETTLED"])
        self.facts: dict[str, Any] = {"ends": []}

    def began(self, trainer: Any) -> None:
        self.facts["effective"] = self._effective(trainer)
        self._memory.enter(self._parts.FIRST_STEP)

    def step_ended(self, step: int) -> None:
        self._memory.check()
        if step == 1:
            self._memory.enter(self._parts.STEADY)
        if step == self._settled_after:
            self._memory.settle()
            self.facts["measures"] = self._memory.measures()
        self.facts["ends"].append(time.process_time())

    def ended(self) -> None:
        Path(os.environ["WATCH_FACTS"]).write_text(json.dumps(self.facts), encoding="utf-8")


READINGS: list[Readings] = []


def _watch(module: ModuleType) -> None:
    if module.__name__ == "transformers.modeling_utils":
        load = module.PreTrainedModel.from_pretrained.__func__

        def loaded(cls: Any, *words: Any, **keywords: Any) -> Any:
            if not READINGS:
                READINGS.append(Readings())
            return load(cls, *words, **keywords)

        module.PreTrainedModel.from_pretrained = classmethod(loaded)
        return
    train = module.Trainer.train

    def watched(self: Any, *words: Any, **keywords: Any) -> Any:
        from transformers import TrainerCallback

        readings = READINGS[0]

        class Watch(TrainerCallback):  # type: ignore[misc]
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                readings.began(trainer)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                readings.step_ended(state.global_step)

            def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                readings.ended()

        trainer = self
        self.add_callback(Watch())
        return train(self, *words, **keywords)

    module.Trainer.train = watched
