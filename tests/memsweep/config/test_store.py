from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra import compose, initialize
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.errors import HydraException

from memsweep.config.store import register
from memsweep.errors import CatalogueError

PROSE = "summary: Does it.\nsaves: nothing\ncosts: nothing\nsource: arXiv:0000.00000\nchanges: nothing\n"


@pytest.fixture
def conf(tmp_path: Path) -> Iterator[Path]:
    files = {
        "config.yaml": "defaults: [techniques, model: small, extra: null, _self_]\nseed: 0\n",
        "model/small.yaml": "# A comment.\n# @package inner.model\nsize: 1\n",
        "extra/empty.yaml": "# Nothing.\n",
        "technique/packing/baseline.yaml": PROSE,
        "technique/packing/bfd.yaml": PROSE
        + 'parameters: {n: {default: 2, help: number}}\nsettings: {trainer: {n: "${n}"}}\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    Plugins.instance()  # its scan stores into ConfigStore, once a process: it must not be undone
    store = ConfigStore.instance()
    before = copy.deepcopy(store.repo)
    yield tmp_path
    store.repo = before


def test_every_file_is_an_option_and_every_technique_joins_the_defaults(conf: Path) -> None:
    catalogue = register(conf)

    with initialize(version_base="1.3", config_path=None):
        config = compose(
            "config", overrides=["technique/packing=bfd", "technique.packing.n=3", "extra=empty"]
        )

    assert config == {
        "technique": {"packing": {"option": "bfd", "n": 3}},
        "inner": {"model": {"size": 1}},
        "extra": {},
        "seed": 0,
    }
    assert list(catalogue.techniques) == ["packing"]


def test_a_parameter_may_be_typed_while_another_option_is_composed(conf: Path) -> None:
    register(conf)

    with initialize(version_base="1.3", config_path=None):
        config = compose("config", overrides=["technique.packing.n=3"])

    assert config.technique == {"packing": {"option": "baseline", "n": 3}}


def test_registering_twice_is_registering_once(conf: Path) -> None:
    register(conf)
    first = ConfigStore.instance().list("technique/packing")
    register(conf)

    assert ConfigStore.instance().list("technique/packing") == first == ["baseline.yaml", "bfd.yaml"]


@pytest.mark.parametrize("typed", ["trainer.arguments.beta=0.1", "+trainer.arguments.beta=0.1"])
def test_a_field_of_the_trainers_arguments_is_typed_with_or_without_a_plus(conf: Path, typed: str) -> None:
    (conf / "trainer").mkdir()
    (conf / "trainer" / "sft.yaml").write_text("name: sft\narguments: {}\n")
    register(conf)

    with initialize(version_base="1.3", config_path=None):
        config = compose("config", overrides=["+trainer=sft", typed])
        with pytest.raises(HydraException, match=r"Could not override 'trainer\.argument\.beta'"):
            compose("config", overrides=["+trainer=sft", "trainer.argument.beta=0.1"])

    assert config.trainer == {"name": "sft", "arguments": {"beta": 0.1}}


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n"])
def test_a_file_that_is_no_mapping_is_named(conf: Path, text: str) -> None:
    (conf / "model" / "small.yaml").write_text(text)

    with pytest.raises(CatalogueError, match=r"small\.yaml"):
        register(conf)
