from __future__ import annotations

from memsweep.findings.find import find
from memsweep.record.study import Constraint, Study
from memsweep.record.trial import TrialResult
from memsweep.report.axis import axes
from memsweep.units import GIB
from synthetic import study_of


def test_an_objective_is_read_in_the_unit_that_suits_it(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    x, y = axes(find(results, study))

    assert x.title == "peak memory (MiB), less is better"
    assert y.title == "throughput (tokens/s), more is better"


def test_a_limit_is_near_when_the_picture_can_show_it(results: tuple[TrialResult, ...], study: Study) -> None:
    found = find(results, study)
    far = find(
        results,
        study_of(
            24, constraints={"budget": Constraint(measure="peak_memory_bytes", upper=True, bound=80.0 * GIB)}
        ),
    )

    for findings, is_near in ((found, True), (far, False)):
        x, _ = axes(findings)
        ((limit, _),) = x.limits(findings)
        assert x.is_near(limit, findings) is is_near
