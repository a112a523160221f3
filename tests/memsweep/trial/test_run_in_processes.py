"""What trials measure of memory, each in a process of its own, as in a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured, Outcome, OutOfMemory
from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.trial.isolate import ProcessPool
from memsweep.trial.launch import run_isolated
from tiny import share_cache, tiny_config

pytestmark = pytest.mark.slow

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a tiny trial with some options in a process forked from a template."""
    catalogue = read_catalogue(conf_folder())
    with pytest.MonkeyPatch.context() as patch, ProcessPool(max_templates=1) as pool:
        share_cache(tmp_path_factory, patch)

        def run_one(options: Mapping[str, str], budget_bytes: int | None = None) -> Outcome:
            config = replace(tiny_config(budget_bytes=budget_bytes), technique=catalogue.choose(options, {}))
            folder = TrialFolder(tmp_path_factory.mktemp("trial"))
            return run_isolated(config, catalogue, folder, pool=pool).outcome

        yield run_one


@pytest.mark.alone
def test_windows_add_up_to_the_wall_clock_of_the_measurement(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The phase's clock is the supervisor's protocol, which knows no window."""
    share_cache(tmp_path_factory, monkeypatch)
    config = tiny_config(examples=16, passes=6)
    config = replace(config, measure=replace(config.measure, precision=0.0001))
    with ProcessPool(max_templates=1) as pool:
        folder = TrialFolder(tmp_path_factory.mktemp("trial"))
        record = run_isolated(config, read_catalogue(conf_folder()), folder, pool=pool)

    seconds = [window["seconds"] for window in record.facts["windows"]]
    assert len(seconds) == 6
    assert sum(seconds) == pytest.approx(record.seconds["measure"], rel=0.01)


def peak(outcome: Outcome) -> float:
    assert isinstance(outcome, Measured), outcome
    return outcome.measures["peak_memory_bytes"]


def test_identical_trials_agree_within_two_percent_whatever_ran_before(run: Run) -> None:
    small, large = {"truncation": "max_length"}, {"checkpointing": "disabled"}
    order = (small, large, large, small, small, large)

    peaks = [(options, peak(run(options))) for options in order]

    for options in (small, large):
        found = [value for name, value in peaks if name is options]
        assert max(found) <= min(found) * 1.02


def test_memory_ranks_techniques_as_they_are_known_to_rank(run: Run) -> None:
    found = {
        name: peak(run(options))
        for name, options in {
            "baseline": {},
            "no checkpointing": {"checkpointing": "disabled"},
            "small micro-batches": {"micro_batch": "size"},
        }.items()
    }

    assert sorted(found, key=found.__getitem__) == ["small micro-batches", "baseline", "no checkpointing"]


def test_a_budget_just_above_the_peak_is_enough_and_just_below_is_not(run: Run) -> None:
    needed = peak(run({}))

    assert isinstance(run({}, int(needed * 1.05)), Measured)
    assert isinstance(run({}, int(needed * 0.9)), OutOfMemory)
