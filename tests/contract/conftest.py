"""One walk for all tests of this folder, and what it proved as one line at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from sample import sampled
from walk import Walk, installed_catalogue, silent_on_one_thread

from side_by_side import place
from tiny import share_cache


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """Runs choices on tiny models, each once."""
    n_threads = torch.get_num_threads()
    silent_on_one_thread()
    with pytest.MonkeyPatch.context() as patch:
        share_cache(tmp_path_factory, patch)
        yield Walk(installed_catalogue(), tmp_path_factory.mktemp("walk"))
    torch.set_num_threads(n_threads)


@pytest.fixture
def proven(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """A function that says what has been proven of a pair; the process that prints the summary counts it."""
    return lambda what: record_property("proven", what)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("sample"):
        return
    cases = {item: case for item in items if place(item).startswith("contract/") and (case := _case(item))}
    kept = sampled(list(cases.values()))
    dropped = {item for number, item in enumerate(cases) if number not in kept}
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]


def _case(item: pytest.Item) -> tuple[tuple[str, ...], str] | None:
    """Return what a test of the walk is about, and its trainer; None of a test of something else."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    name = item.originalname  # type: ignore[attr-defined]
    match parameters:
        case {"cell": cell, "equal": equal}:
            return (name, cell.option, equal.option), cell.trainer
        case {"cell": cell}:
            return (name, cell.option), cell.trainer
        case {"breach": breach}:
            return (name, breach.option.label, breach.rule.because), breach.trainer
        case {"draw": draw}:
            return (name, draw.trainer, str(draw.number // 3)), draw.trainer
    return None
