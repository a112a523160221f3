"""One walk for all tests of this folder, and what it proved as one line at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from walk import Walk

from memsweep.technique.catalogue import conf_folder, read_catalogue
from tiny import share_cache

_TALLY: Counter[str] = Counter()


@pytest.fixture(scope="session")
def tally() -> Counter[str]:
    """What was proven, by kind."""
    return _TALLY


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """Runs choices on tiny models in this process, each once."""
    import datasets
    import transformers

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny matrices: more threads only wait for each other
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    with pytest.MonkeyPatch.context() as patch:
        share_cache(tmp_path_factory, patch)
        yield Walk(read_catalogue(conf_folder()), tmp_path_factory.mktemp("walk"))
    torch.set_num_threads(n_threads)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _TALLY:
        n_all = sum(_TALLY.values())
        terminalreporter.write_line(
            f"support matrix: {n_all} pairs of option and trainer: {_TALLY['work']} proven to work, "
            f"{_TALLY['refused']} proven refused, {_TALLY['unverifiable']} unverifiable on this machine"
        )
