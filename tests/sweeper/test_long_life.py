"""A study of thousands of trials holds no more than what it knows of them, and the last takes no longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from controllers import Controllers

from footprint import a_trial, isolated_study
from memsweep.record.trial import read_results

pytestmark = pytest.mark.slow

SAME = ("n_handles", "n_threads", "n_children", "n_partial")


def held(look: dict[str, Any]) -> dict[str, int]:
    """Return what must not grow at all."""
    return {name: look[name] for name in SAME}


@pytest.mark.timeout(600)
def test_two_thousand_trials_leave_their_controller_as_it_was_but_for_what_it_knows(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    settings = {"n_trials": 2_000, "storage": "auto", "sampler": "random", "progress": "off"}
    look_at, space = (100, 500, 1_000, 1_500, 1_999), ["x=range(0,60)", "y=range(0,60)"]
    with Controllers() as controllers:
        done = controllers.run(folder, space, settings=settings, look_at=look_at, limit_seconds=550)
    assert done["code"] == 0, done["printed"]
    first, middle, *_, before, last = done["looked"]

    assert len(read_results(folder / "results.jsonl")) == 2_000
    assert held(last) == held(first)
    assert a_trial(middle, last, "anonymous_bytes") < 24 << 10
    assert a_trial(middle, last, "study_bytes") < 8 << 10
    assert a_trial(before, last, "cpu_seconds") < 3 * a_trial(first, middle, "cpu_seconds")


@pytest.mark.timeout(600)
def test_trials_in_processes_leave_nothing_to_controller_and_template(tmp_path: Path) -> None:
    """Nothing here has the controller collect its garbage: what is to be collected comes and goes."""
    looked, _ = isolated_study(tmp_path, 120, (70, 119), ["hydra.sweeper.sampler=random"])
    first, last = looked

    assert held(last) == held(first)
    assert last["anonymous_bytes"] - first["anonymous_bytes"] < 8 << 20
    assert last["children_bytes"] - first["children_bytes"] < 1 << 20
