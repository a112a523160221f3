"""Composing quickly must compose the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import version
from hydra._internal import defaults_list
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from hydra_plugins.pareto_sweeper._composition import compose

FILES = {
    "config.yaml": "defaults: [_self_, model: small, data: '${model}_data', extra: null]\nseed: 0\n",
    "model/small.yaml": "defaults: [part: one]\nsize: 1\n",
    "model/large.yaml": "defaults: [part: two]\nsize: 2\n",
    "model/part/one.yaml": "name: one\n",
    "model/part/two.yaml": "name: two\n",
    "data/small_data.yaml": "rows: 10\n",
    "data/large_data.yaml": "rows: 20\n",
    "extra/both.yaml": "# @package _global_\ndefaults: [/model@second: large, _self_]\nseed: 5\n",
}


@pytest.fixture
def hydra(tmp_path: Path, hydra_restore_singletons: None) -> Iterator[tuple[Any, DictConfig]]:
    """Hydra's loader for a conf folder with interpolated defaults, and the sweep's config."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    version.setbase("1.3")
    hydra = Hydra.create_main_hydra2("app", create_config_search_path(str(tmp_path)))
    yield (
        hydra.config_loader,
        hydra.compose_config("config", [], RunMode.MULTIRUN, with_log_configuration=False),
    )


@pytest.mark.parametrize(
    "overrides",
    [[], ["model=large"], ["extra=both"], ["model=large", "extra=both", "seed=3", "+new.key=[1,2]"]],
    ids=" ".join,
)
def test_it_is_what_hydra_composes(hydra: tuple[Any, DictConfig], overrides: list[str]) -> None:
    loader, config = hydra
    expected = loader.load_sweep_config(config, overrides)
    found = compose(loader, config, overrides)

    assert OmegaConf.to_yaml(found) == OmegaConf.to_yaml(expected)


def test_the_interpolated_choice_follows(hydra: tuple[Any, DictConfig]) -> None:
    found = compose(*hydra, ["model=large"])

    assert found.data == {"rows": 20}


def test_hydra_is_afterwards_as_it_was(hydra: tuple[Any, DictConfig]) -> None:
    loader, config = hydra
    before = defaults_list._create_interpolation_map
    compose(loader, config, [])
    with pytest.raises(Exception, match="no_such_key"):
        compose(loader, config, ["no_such_key=1"])

    assert defaults_list._create_interpolation_map is before
    assert copy.deepcopy(loader.repository).sources[0] is not loader.repository.sources[0]


def test_a_hydra_without_that_function_composes_as_well(
    hydra: tuple[Any, DictConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    import hydra_plugins.pareto_sweeper._composition as composition

    monkeypatch.setattr(composition, "_MAP", "renamed")

    assert compose(*hydra, ["model=large"]).model.size == 2
