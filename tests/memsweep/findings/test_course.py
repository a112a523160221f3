from __future__ import annotations

import dataclasses

import pytest

from memsweep.findings.course import course, nearly_all_after
from memsweep.findings.find import find
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def test_the_front_never_covers_less_and_ends_at_what_is_told_elsewhere() -> None:
    findings = find(trials_of_every_kind(100), study_of(100))

    points = course(findings)

    volumes = [point.volume for point in points if point.volume is not None]
    assert volumes == sorted(volumes)
    assert volumes[-1] == pytest.approx(findings.hypervolume())
    assert len(points) == 100


def test_what_trains_the_same_covers_no_more_than_all(results: tuple[TrialResult, ...], study: Study) -> None:
    for point in course(find(results, study)):
        if point.same_volume is not None:
            assert point.volume is not None
            assert point.same_volume <= point.volume + 1e-12


def test_before_a_trial_is_feasible_nothing_is_covered(study: Study) -> None:
    points = course(find([measured(0, BASELINE, feasible=False), measured(1, BASELINE)], study))

    assert points[0].volume is None
    assert points[1].volume is not None
    assert [point.is_new for point in points] == [False, True]


def test_nearly_all_is_reached_by_the_trial_that_brought_it(study: Study) -> None:
    better = dataclasses.replace(
        measured(1, BASELINE), objectives={"tokens_per_second": 2_000.0, "peak_memory_bytes": 2e8}
    )
    points = course(find([measured(0, BASELINE), better, measured(2, BASELINE)], study))

    assert nearly_all_after(points) == 1
    assert nearly_all_after(()) is None


def test_without_a_worst_corner_there_is_no_course(study: Study) -> None:
    assert course(find([measured(0, BASELINE)], dataclasses.replace(study, reference={}))) == ()
