"""The replay of finished studies: tables, what a sampler is told, what is counted.  No bar is judged here."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Phase, Reused, TimedOut
from synthetic import ended, measured, study_of

REPLAY = Path(__file__).resolve().parents[1] / "benchmarks" / "replay"

Load = Callable[[str], ModuleType]

LEVELS = {"adapter": ("baseline", "lora"), "packing": ("baseline", "bfd", "wrapped")}
CELLS = [(a, p) for a in LEVELS["adapter"] for p in LEVELS["packing"] if (a, p) != ("lora", "wrapped")]
VALUES = np.array([[10.0, 8.0], [12.0, 9.0], [13.0, 9.5], [11.0, 4.0], [14.0, 5.0]])


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a module of benchmarks/replay as a script there does."""
    monkeypatch.syspath_prepend(str(REPLAY.parent))
    monkeypatch.syspath_prepend(str(REPLAY))
    return importlib.import_module


@pytest.fixture
def table(load: Load) -> Any:
    """Five legal cells of six, of which one does not fit."""
    return load("_table").Table("small", LEVELS, CELLS, VALUES, np.ones(5), 9.2)


def test_a_front_found_in_part_is_a_share_and_what_does_not_fit_adds_nothing(table: Any) -> None:
    shares = table.hypervolumes([0, 2, -1, 4, 3])

    assert shares[1] == shares[2] == shares[0]
    assert 0.0 <= shares[0] < shares[3] < shares[4] == pytest.approx(1.0)


def test_a_cell_that_is_not_in_the_table_breaks_a_rule(table: Any) -> None:
    space = table.space()
    verdict = table.judge(
        space.request(space.cell({"technique/adapter": "lora", "technique/packing": "wrapped"}))
    )

    assert verdict.violations
    assert space.n_cells() == 6


def test_a_limit_is_exceeded_by_the_share_that_was_asked_for(table: Any) -> None:
    assert table.with_limit(0.4).fits.sum() == 3


@pytest.mark.parametrize("sampler", ["auto", "tpe", "random"])
def test_a_replay_begins_with_the_baseline_and_tries_each_legal_cell_once(
    load: Load, table: Any, sampler: str
) -> None:
    found = load("_replayed").replayed(table, {"name": sampler}, seed=0, n_trials=20)

    assert found.tried[0] == 0
    assert sorted(found.tried) == [0, 1, 2, 3, 4]


def test_what_turns_out_to_have_been_measured_costs_no_trial(load: Load, table: Any) -> None:
    twins = replace(table, set_up=np.array([0, 1, 1, 3, 4]), limit=float("inf"))
    found = load("_replayed").replayed(twins, {"name": "random"}, seed=0, n_trials=20)

    assert len(found.tried) == 4
    assert found.n_reused == 1


def test_the_official_plugin_repeats_itself_and_tries_what_is_illegal(load: Load, table: Any) -> None:
    module = load("_replayed")
    found = module.replayed(table, {"name": module.OFFICIAL}, seed=0, n_trials=40)

    assert len(found.tried) == 40
    assert -1 in found.tried
    assert len(set(found.tried)) < 7


def test_what_does_not_fit_is_told_as_out_of_memory_with_what_was_held(load: Load, table: Any) -> None:
    result = load("_replayed").result_of(table, 2, number=7)

    assert result.outcome.type == "out_of_memory"
    assert result.outcome.held_bytes == 9
    assert not result.measures


def test_the_family_is_as_large_as_it_says_and_a_third_to_two_thirds_do_not_fit(load: Load) -> None:
    one = load("_family").table(0)

    assert len(one.cells) == 44_928
    assert 1 / 3 < one.fits.mean() < 0.72
    assert one.cells[0] == ("baseline",) * 10


@pytest.mark.parametrize("name", ["sft", "reward"])
def test_a_measured_table_holds_at_least_300_cells_and_where_it_is_from(load: Load, name: str) -> None:
    path = REPLAY / f"{name}.csv"
    one = load("_table").read(path)

    assert len(one.cells) >= 300
    assert (one.values > 0).all()
    assert all(label == "baseline" for label in one.cells[0])
    assert path.read_text(encoding="utf-8").startswith("# Every legal cell measured once by")


def test_a_table_is_written_from_a_study_and_read_again(load: Load, tmp_path: Path) -> None:
    results = [
        measured(number, {"adapter": adapter, "packing": packing}, conditions={"machine": "a test"})
        for number, (adapter, packing) in enumerate([("baseline", "baseline"), ("lora", "bfd")])
    ]
    twin = {"adapter": "lora", "packing": "wrapped"}
    outcome = Reused(trial=1, measures=results[1].measures)
    results.append(replace(results[1], number=2, choice=twin, outcome=outcome, reused_from=1))
    folder = StudyFolder(tmp_path)
    study_of(2, fixed=("trainer=sft",)).write(folder)
    folder.results.write_text("".join(json.dumps(r.to_mapping()) + "\n" for r in results), encoding="utf-8")
    (tmp_path / "table.csv").write_text(load("measure").text_of(tmp_path, ["adapter", "packing"]), "utf-8")
    one = load("_table").read(tmp_path / "table.csv")
    text = (tmp_path / "table.csv").read_text(encoding="utf-8")

    assert one.cells == [("baseline", "baseline"), ("lora", "bfd"), ("lora", "wrapped")]
    assert one.values[1, 1] == pytest.approx(results[1].objectives["peak_memory_bytes"], rel=1e-4)
    assert one.seconds == pytest.approx([5.2, 5.2, 5.2])
    assert one.set_up.tolist() == [0, 1, 1]
    assert "# each trial: trainer=sft" in text
    assert "# machine: a test" in text


def test_a_table_with_a_hole_is_not_written(load: Load, tmp_path: Path) -> None:
    outcome = TimedOut(limit_seconds=1.0, phase=Phase.MEASURE)
    study_of(1).write(StudyFolder(tmp_path))
    lost = ended(0, {"adapter": "lora"}, outcome)
    StudyFolder(tmp_path).results.write_text(json.dumps(lost.to_mapping()) + "\n", encoding="utf-8")

    with pytest.raises(ValueError, match="1 trials have no figures, such as adapter=lora"):
        load("measure").text_of(tmp_path, ["adapter"])
