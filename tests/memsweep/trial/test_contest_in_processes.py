"""Trials that are cut short, each in a process of its own, as in a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import CutShort, Measured
from memsweep.record.rivals import Rival, Rivals
from memsweep.record.study import Constraint, Direction
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.trial.isolate import ProcessPool
from memsweep.trial.launch import run_isolated
from memsweep.units import bytes_text
from tiny import share_cache, tiny_config

pytestmark = [pytest.mark.slow, pytest.mark.alone]

Run = Callable[[Rivals | None], TrialRecord]
OBJECTIVES = {"tokens_per_second": Direction.MAXIMIZE, "peak_memory_bytes": Direction.MINIMIZE}
N_PASSES = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs one tiny trial of many passes, held against rivals."""
    catalogue = read_catalogue(conf_folder())
    config = tiny_config(passes=N_PASSES)
    config = replace(
        config, measure=replace(config.measure, min_passes=N_PASSES, precision=0.2, max_seconds=600.0)
    )
    with pytest.MonkeyPatch.context() as patch, ProcessPool(max_templates=1) as pool:
        share_cache(tmp_path_factory, patch)

        def run_one(rivals: Rivals | None) -> TrialRecord:
            folder = TrialFolder(tmp_path_factory.mktemp("trial"))
            return run_isolated(config, catalogue, folder, pool=pool, rivals=rivals)

        yield run_one


@pytest.fixture(scope="module")
def whole(run: Run) -> TrialRecord:
    """The trial measured to its end."""
    record = run(None)
    assert isinstance(record.outcome, Measured), record.outcome
    return record


def measures(record: TrialRecord) -> dict[str, float]:
    assert isinstance(record.outcome, Measured | CutShort), record.outcome
    return dict(record.outcome.measures)


def rivals(whole: TrialRecord, *, speed: float, memory: float) -> Rivals:
    """Return one rival that is so many times as fast, and takes so many times the memory."""
    own = measures(whole)
    figures = {
        "tokens_per_second": own["tokens_per_second"] * speed,
        "peak_memory_bytes": own["peak_memory_bytes"] * memory,
    }
    best = (Rival(number=4, objectives=figures, worst=figures),)
    return Rivals(objectives=OBJECTIVES, best=best, conditions=whole.conditions, versions=whole.versions)


def test_a_dominated_trial_ends_after_a_few_passes_with_true_figures(run: Run, whole: TrialRecord) -> None:
    record = run(rivals(whole, speed=3.0, memory=0.5))
    found, expected = measures(record), measures(whole)

    assert isinstance(record.outcome, CutShort)
    assert record.outcome.reason.startswith("worse than trial 4 beyond noise: ")
    assert len(record.facts["windows"]) < N_PASSES == len(whole.facts["windows"])
    assert record.seconds["measure"] < whole.seconds["measure"]
    assert found["peak_memory_bytes"] == pytest.approx(expected["peak_memory_bytes"], rel=0.02)
    assert found["tokens_per_second"] == pytest.approx(expected["tokens_per_second"], rel=0.5)
    assert found["kept_tokens"] == expected["kept_tokens"]


@pytest.mark.parametrize(("speed", "memory"), [(3.0, 1.5), (0.3, 0.5)], ids=["smaller", "faster"])
def test_a_trial_that_is_better_in_one_is_measured_to_its_end(
    run: Run, whole: TrialRecord, speed: float, memory: float
) -> None:
    record = run(rivals(whole, speed=speed, memory=memory))

    assert isinstance(record.outcome, Measured)
    assert len(record.facts["windows"]) == N_PASSES


def test_a_trial_on_other_data_is_measured_to_its_end(run: Run, whole: TrialRecord) -> None:
    others = replace(rivals(whole, speed=3.0, memory=0.5), conditions={**whole.conditions, "data": "others"})

    assert isinstance(run(others).outcome, Measured)


def test_too_much_memory_ends_a_trial_before_any_pass_is_timed(run: Run, whole: TrialRecord) -> None:
    peak = measures(whole)["peak_memory_bytes"]
    limit = Constraint(measure="peak_memory_bytes", upper=True, bound=peak / 2)
    record = run(Rivals(objectives=OBJECTIVES, limits={"small": limit}))

    assert isinstance(record.outcome, CutShort)
    assert record.outcome.reason.startswith("beyond small before the first timed pass: peak memory ")
    assert record.outcome.reason.endswith(f", at most {bytes_text(peak / 2)}")
    assert "windows" not in record.facts
    assert "measure" not in record.seconds
    assert "tokens_per_second" not in measures(record)
    assert measures(record)["peak_memory_bytes"] == pytest.approx(peak, rel=0.02)


def test_memory_within_the_demand_ends_nothing(run: Run, whole: TrialRecord) -> None:
    peak = measures(whole)["peak_memory_bytes"]
    limit = Constraint(measure="peak_memory_bytes", upper=True, bound=peak * 1.1)

    assert isinstance(run(Rivals(objectives=OBJECTIVES, limits={"small": limit})).outcome, Measured)
