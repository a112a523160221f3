"""What the tests of conf/ share: the real folder, its catalogue, and Hydra composing it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hydra import compose, initialize
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from omegaconf import DictConfig

from memsweep.config.store import CONFIG_NAME, register
from memsweep.technique.catalogue import Catalogue, read_catalogue
from memsweep.technique.compatibility import Circumstances

CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.fixture(scope="session")
def conf() -> Path:
    """The repository's conf folder, whatever MEMSWEEP_CONF says."""
    return CONF


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The techniques of conf/."""
    return read_catalogue(CONF)


@pytest.fixture(scope="session")
def ideal() -> Callable[[str], Circumstances]:
    """A function from a trainer's name to a machine that has everything."""
    versions = {"bitsandbytes": "0.50.2", "kernels": "0.18.2", "deepspeed": "0.19.8", "vllm": "0.30.0"}
    versions |= {
        "optimum-quanto": "0.2.7",
        "flash-attn": "2.8.3",
        "flash-attn-3": "3.0.0",
        "flash-attn-4": "4.0.0",
        "transformers": "5.24.0",
    }

    def machine(trainer: str) -> Circumstances:
        return Circumstances(
            trainer=trainer,
            device="cuda",
            versions=versions,
            numbers={"batch": 8},
            compute_capability=9.0,
            several_devices=True,
            several_processes=True,
        )

    return machine


@pytest.fixture
def composer() -> Iterator[Callable[..., DictConfig]]:
    """A function that registers a conf folder and composes overrides; Hydra's store is restored after."""
    Plugins.instance()  # its scan stores hydra/sweeper=pareto, once a process: it must not be undone
    store = ConfigStore.instance()
    before = copy.deepcopy(store.repo)
    with initialize(version_base="1.3", config_path=None):
        registered: list[Path] = []

        def composed(*overrides: str, conf: Path = CONF) -> DictConfig:
            if conf not in registered:
                register(conf)
                registered.append(conf)
            return compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=True)

        yield composed
    store.repo = before
