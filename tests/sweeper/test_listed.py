"""The cells of a space as data, with what the rules make of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import initialize
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from hydra_plugins.pareto_sweeper.sweeper import ParetoSweeper
from memsweep.errors import ConfigError

Listed = Callable[..., dict[str, Any]]


@pytest.fixture
def listed(technique_app: Path) -> Listed:
    """A function that tells what a command line would search in the app of three techniques."""

    def tell(*arguments: str, limit: int = 100, hydra: tuple[str, ...] = ()) -> dict[str, Any]:
        with initialize(version_base="1.3", config_path=None):
            loaded = GlobalHydra.instance().hydra
            assert loaded is not None
            loader = loaded.config_loader
            config = loader.load_configuration(
                "config", [*arguments, *hydra], run_mode=RunMode.MULTIRUN, from_shell=False
            )
            return ParetoSweeper.cells(config, loader, list(arguments), limit)

    return tell


def test_every_cell_is_listed_with_the_rules_that_refuse_it(listed: Listed) -> None:
    found = listed()

    assert (found["n_cells"], found["n_legal"], len(found["cells"])) == (18, 15, 18)
    (sentence,) = found["sentences"]
    assert "it is frozen" in sentence
    assert sum(bool(broken) for _, broken in found["cells"]) == 3


def test_values_keep_their_types(listed: Listed) -> None:
    found = listed("technique/adapter=lora", "technique.adapter.r=8,16")

    assert found["parameters"] == [{"key": "technique.adapter.r", "only_with": [], "values": [8, 16]}]


def test_what_exists_only_with_another_choice_has_no_value_elsewhere(listed: Listed) -> None:
    found = listed("technique/adapter=baseline,lora", "technique.adapter.r=8,16")

    assert [at for at, _ in found["cells"]] == [[0, None], [1, 0], [1, 1]]
    assert found["parameters"][1]["only_with"] == ["technique/adapter=lora"]


def test_a_space_that_is_too_large_tells_its_size_and_its_rules(listed: Listed) -> None:
    found = listed(limit=10)

    assert (found["n_cells"], found["n_legal"], found["cells"]) == (18, None, None)
    assert len(found["sentences"]) == 1


def test_what_cannot_be_meant_is_refused(listed: Listed) -> None:
    with pytest.raises(ConfigError, match="no option 'lroa'"):
        listed("technique/adapter=baseline,lroa")


def test_no_folder_is_made(listed: Listed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))

    listed()

    assert set(tmp_path.rglob("*")) == before
