"""Measured trials of tiny models, as they are read from a study, without any training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from memsweep.config.schema import TrialConfig
from memsweep.data.probe import probe
from memsweep.export.chosen import Chosen
from memsweep.findings.find import find
from memsweep.machine import Device
from memsweep.model.folder import model_place
from memsweep.readback.plain import plain
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.technique.settings import merge
from memsweep.trainers.arguments import training_arguments
from memsweep.trainers.build import recipe_of
from memsweep.trainers.fields import field_names
from memsweep.trainers.recipe import TrialRequest
from synthetic import measured, study_of
from tiny import share_cache, tiny_config

VERSIONS = {
    "python": "3.11.2",
    "memsweep": "0.1.0",
    "torch": "2.13.0+cpu",
    "transformers": "5.24.0",
    "trl": "1.16.0",
}

Choose = Callable[..., Chosen]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    share_cache(tmp_path_factory, monkeypatch)


@pytest.fixture
def choose(tmp_path: Path) -> Choose:
    """A function that returns a measured trial with some options, what was in force as a trainer has it."""
    catalogue = read_catalogue(conf_folder())

    def chosen(
        trainer: str = "sft",
        options: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        config: TrialConfig | None = None,
        **facts: Any,
    ) -> Chosen:
        config = replace(
            config or tiny_config(trainer), technique=catalogue.choose(options or {}, parameters or {})
        )
        settings = merge(config.technique, trainer, catalogue)
        choice = {name: one.option for name, one in config.technique.items()}
        result = replace(measured(1, {}), choice=choice, parameters={}, **facts)
        return Chosen(
            findings=find([measured(0, {"adapter": "baseline"}), result], study_of(2)),
            result=result,
            record=TrialRecord(
                outcome=Measured(measures=result.measures),
                versions=VERSIONS,
                facts={"memory": {"allocator": "tight"}},
                conditions={"machine": "a processor, 2 cores", "data": "4 examples of embedded (0123)"},
            ),
            config=config,
            settings=settings,
            effective=_effective(config, settings, tmp_path),
            catalogue=catalogue,
        )

    return chosen


def _effective(config: TrialConfig, settings: Any, folder: Path) -> dict[str, Any]:
    recipe, place = recipe_of(config.trainer.name), model_place(config.model)
    rows = probe(config.dataset, config.trainer.data, 4, 0).rows
    request = TrialRequest(
        config=config,
        settings=settings,
        device=Device.CPU,
        model=place.name,
        revision=None,
        tokenizer=place.tokenizer,
        data=rows,  # type: ignore[arg-type]  # nothing is built from it
        folder=folder,
    )
    arguments, _ = training_arguments(recipe, request)
    keywords = arguments.model_init_kwargs or {}
    dtype = keywords.get("dtype", "float32")
    return {
        "trainer": {
            "arguments": {name: plain(getattr(arguments, name)) for name in field_names(recipe.config_class)}
        },
        "model": {
            "checkpointing": {"modules": [bool(arguments.gradient_checkpointing)] * 2},
            "base_dtypes": {str(getattr(torch, str(dtype))): 10},
        },
        "launch": {"device": "cpu", "processes": 1},
        "environment": {
            "OMP_NUM_THREADS": "2",
            "OMP_WAIT_POLICY": "PASSIVE",
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        },
    }
