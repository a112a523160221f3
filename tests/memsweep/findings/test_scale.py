from __future__ import annotations

import dataclasses

import pytest

from memsweep.findings.scale import scales
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.units import GIB, MIB
from synthetic import measured, study_of


def test_the_name_of_an_objective_carries_the_unit_of_its_values(
    study: Study, results: tuple[TrialResult, ...]
) -> None:
    speed, memory = scales(study, results)

    assert (speed.title, memory.title) == ("throughput (tokens/s)", "peak memory (MiB)")
    assert memory.shown(413 * MIB) == 413
    assert speed.shown(1_172.456) == 1172.5


def test_bytes_are_shown_in_the_unit_of_the_largest(study: Study) -> None:
    results = [
        measured(number, {}, objectives={"tokens_per_second": 1.0, "peak_memory_bytes": n_bytes})
        for number, n_bytes in enumerate([300 * MIB, 3 * GIB])
    ]

    memory = scales(study, results)[1]

    assert (memory.title, memory.shown(300 * MIB)) == ("peak memory (GiB)", 0.29297)


@pytest.mark.parametrize(
    ("name", "title"), [("error", "error"), ("step_seconds", "step (s)"), ("file_bytes", "file (bytes)")]
)
def test_other_apps_objectives_keep_their_own_words(name: str, title: str) -> None:
    study = dataclasses.replace(study_of(1), objectives={name: Direction.MINIMIZE})

    assert scales(study, [])[0].title == title
