"""One walk for all tests of this folder, and what it proved as one line at the end."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from seen import walk_config
from walk import Walk, alone, installed_catalogue

from memsweep.machine import n_cores
from memsweep.model.folder import model_place
from tiny import DATA, share_cache

MANY = 40
"""Choices from which on it pays to start processes: each imports for some ten seconds."""

_TALLY: Counter[str] = Counter()


@pytest.fixture(scope="session")
def tally() -> Counter[str]:
    """What was proven, by kind."""
    return _TALLY


@pytest.fixture(scope="session")
def walk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """Runs choices on tiny models, each once, on all cores."""
    n_threads = torch.get_num_threads()
    alone()
    with pytest.MonkeyPatch.context() as patch:
        share_cache(tmp_path_factory, patch)
        walk = Walk(installed_catalogue(), tmp_path_factory.mktemp("walk"))
        wanted = [pair for item in request.session.items for pair in _asked_by(item, walk)]
        if len(wanted) < MANY:
            yield walk
        else:
            for trainer in DATA:  # made once, before processes could make them at the same time
                model_place(walk_config(trainer, walk.folder).model)
            model_place(walk_config("sft", walk.folder, n_layers=1).model)
            # Not forked: a process whose parent has computed gradients cannot compute any.
            spawn = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(max(1, n_cores()), mp_context=spawn, initializer=alone)
            walk.begin(pool, wanted)
            yield walk
            pool.shutdown(cancel_futures=True)
    torch.set_num_threads(n_threads)


def _asked_by(item: pytest.Item, walk: Walk) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the choices that a test will ask for, as far as its parameters tell."""
    if item.path.parent != Path(__file__).parent:
        return []
    parameters = getattr(item, "callspec", None)
    given = parameters.params if parameters else {}
    if "cell" in given and item.path.name == "test_matrix.py":
        cell = given["cell"]
        if cell.word in ("needs", "unverified"):
            return []
        partner = walk.partner(cell)
        return [(cell.trainer, {**partner, cell.technique: cell.name}), (cell.trainer, partner)]
    if "breach" in given:
        return [(given["breach"].trainer, given["breach"].choice)]
    if "choice" in given:
        return [(given["trainer"], given["choice"])]
    return []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _TALLY:
        n_all = sum(_TALLY.values())
        terminalreporter.write_line(
            f"support matrix: {n_all} pairs of option and trainer: {_TALLY['work']} proven to work, "
            f"{_TALLY['refused']} proven refused, {_TALLY['unverifiable']} unverifiable on this machine"
        )
