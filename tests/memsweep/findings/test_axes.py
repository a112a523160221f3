from __future__ import annotations

import dataclasses

from memsweep.findings.axes import memory_axis, speed_axis
from memsweep.findings.find import find
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from synthetic import study_of, trials_of_every_kind


def trials(objectives: dict[str, Direction]) -> list[TrialResult]:
    """Return trials that have these objectives beside the measures of every trial."""
    figures = dict.fromkeys(objectives, 1.0)
    return [dataclasses.replace(one, objectives=figures) for one in trials_of_every_kind(2)]


def names(**objectives: Direction) -> tuple[str | None, str | None]:
    findings = find(trials(objectives), study_of(2, objectives=objectives))
    memory, speed = memory_axis(findings), speed_axis(findings)
    return (None if memory is None else memory.name), (None if speed is None else speed.name)


def test_objectives_are_found_by_unit_and_direction() -> None:
    found = names(samples_per_second=Direction.MAXIMIZE, steady_peak_bytes=Direction.MINIMIZE)

    assert found == ("steady_peak_bytes", "samples_per_second")


def test_a_rate_goes_before_a_time() -> None:
    assert names(step_seconds=Direction.MINIMIZE)[1] == "step_seconds"
    both = names(step_seconds=Direction.MINIMIZE, tokens_per_second=Direction.MAXIMIZE)
    assert both[1] == "tokens_per_second"


def test_bytes_that_are_to_be_many_are_no_memory() -> None:
    assert names(free_bytes=Direction.MAXIMIZE)[0] == "peak_memory_bytes"  # a measure of all its trials


def test_without_measured_trials_nothing_is_known_beside_the_objectives() -> None:
    findings = find([], study_of(0, objectives={"error": Direction.MINIMIZE}))

    assert (memory_axis(findings), speed_axis(findings)) == (None, None)
