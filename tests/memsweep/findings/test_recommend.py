from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from memsweep.findings.find import Findings, find
from memsweep.findings.recommend import Prefer, Recommendation, Wish, recommend
from memsweep.record.outcome import Measured
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import MIB
from synthetic import measured, study_of

FREE = {"constraints": {}}


def trial(number: int, speed: float, mebibytes: float, **facts: Any) -> TrialResult:
    """Return a feasible trial with these figures; number 0 is the baseline."""
    objectives = {"tokens_per_second": speed, "peak_memory_bytes": mebibytes * MIB}
    choice = {"checkpointing": "baseline" if number == 0 else "disabled"}
    outcome = Measured(measures=objectives, intervals=facts.pop("intervals", {}))
    defaults: dict[str, Any] = {
        "choice": choice,
        "objectives": objectives,
        "measures": objectives,
        "outcome": outcome,
        "constraints": {},
        "feasible": True,
    }
    return dataclasses.replace(measured(number, {}), **defaults | facts)


def findings_of(*results: TrialResult) -> Findings:
    return find(results, study_of(len(results), **FREE))


BASELINE, FAST, SMALL, MIDDLE = (
    trial(0, 1_000, 400),
    trial(1, 2_000, 800),
    trial(2, 900, 200),
    trial(3, 1_900, 300),
)
FOUR = findings_of(BASELINE, FAST, SMALL, MIDDLE)


def found(findings: Findings, **wish: Any) -> Recommendation:
    recommendation = recommend(findings, Wish(**wish))
    assert recommendation is not None
    return recommendation


def number(findings: Findings, **wish: Any) -> int:
    return found(findings, **wish).result.number


def test_under_a_memory_limit_the_fastest_that_fits_is_recommended() -> None:
    assert number(FOUR, memory_bytes=1000 * MIB) == 1
    assert number(FOUR, memory_bytes=500 * MIB) == 3


def test_a_limit_that_is_met_exactly_is_met() -> None:
    assert number(FOUR, memory_bytes=300 * MIB) == 3
    assert number(FOUR, memory_bytes=300 * MIB - 1) == 2


def test_above_a_least_speed_the_smallest_is_recommended() -> None:
    assert number(FOUR, min_speed=0.9) == 3
    assert number(FOUR, min_speed=0.4) == 2
    assert number(FOUR, min_speed=1.0) == 1


def test_the_least_speed_is_a_share_of_the_best_among_what_fits() -> None:
    recommendation = found(FOUR, memory_bytes=250 * MIB, min_speed=0.9)

    assert recommendation.result.number == 2
    assert recommendation.fastest is not None
    assert recommendation.fastest.number == 2


def test_what_is_preferred_may_be_said() -> None:
    assert number(FOUR, memory_bytes=1000 * MIB, prefer=Prefer.MEMORY) == 2
    assert number(FOUR, min_speed=0.4, prefer=Prefer.SPEED) == 1


def test_without_demands_the_knee_is_recommended() -> None:
    assert number(FOUR) == 3


def test_the_knee_is_the_point_furthest_from_the_line_between_the_ends() -> None:
    """On logarithms: the ends are (0, 0) and (1, 1); the others lie above and below the line."""
    ends = trial(0, 1_000, 100), trial(1, 4_000, 1_600)
    above, below = trial(2, 3_000, 300), trial(3, 1_300, 350)

    assert number(findings_of(*ends, above, below)) == 2


def test_a_front_of_two_ends_has_no_knee_and_the_first_objective_decides() -> None:
    assert number(findings_of(trial(0, 1_000, 100), trial(1, 4_000, 1_600))) == 1


def test_by_itself_only_what_trains_the_same_is_recommended() -> None:
    unfair = trial(4, 9_000, 100, changes=("numerics", "trained_parameters"))
    findings = findings_of(BASELINE, FAST, SMALL, MIDDLE, unfair)

    assert number(findings, memory_bytes=1000 * MIB) == 1
    assert number(findings, memory_bytes=1000 * MIB, changes=frozenset({"numerics"})) == 1
    accepted = frozenset({"numerics", "trained_parameters", "data"})
    assert number(findings, memory_bytes=1000 * MIB, changes=accepted) == 4
    assert number(findings, memory_bytes=1000 * MIB, changes=None) == 4


def test_what_is_infeasible_or_measured_by_another_is_not_on_offer() -> None:
    infeasible = trial(4, 9_000, 100, feasible=False)
    reused = trial(5, 9_000, 100, reused_from=4)
    findings = findings_of(BASELINE, FAST, SMALL, MIDDLE, infeasible, reused)

    assert number(findings, memory_bytes=1000 * MIB) == 1


def test_the_runner_up_is_the_next_by_the_same_rule() -> None:
    recommendation = found(FOUR, memory_bytes=500 * MIB)

    assert recommendation.runner_up is not None
    assert recommendation.runner_up.number == 0
    assert (recommendation.n_offered, recommendation.n_fitting, recommendation.n_left) == (4, 3, 3)


def test_one_alone_has_no_runner_up() -> None:
    assert found(FOUR, memory_bytes=250 * MIB).runner_up is None


def test_overlapping_intervals_in_what_decides_are_a_tie() -> None:
    about = {"tokens_per_second": (1_850.0, 2_100.0)}
    near = trial(4, 1_950, 500, intervals={"tokens_per_second": (1_900.0, 2_000.0)})
    findings = findings_of(BASELINE, trial(1, 2_000, 800, intervals=about), SMALL, MIDDLE, near)

    assert found(findings, memory_bytes=1000 * MIB).tied == (3, 4)
    assert found(findings, memory_bytes=1000 * MIB, prefer=Prefer.MEMORY).tied == ()


def test_of_equals_in_what_decides_the_better_in_the_other_is_first() -> None:
    twin = trial(4, 2_000, 700)

    assert number(findings_of(BASELINE, FAST, twin), memory_bytes=1000 * MIB) == 4


def test_nothing_that_fits_is_none() -> None:
    assert recommend(FOUR, Wish(memory_bytes=100 * MIB)) is None
    assert recommend(findings_of(), Wish()) is None


def own(findings: Findings, objectives: dict[str, Direction]) -> Findings:
    return find(findings.results, study_of(4, **FREE, objectives=objectives))


def test_memory_that_is_no_objective_is_taken_from_the_measures() -> None:
    findings = own(FOUR, {"tokens_per_second": Direction.MAXIMIZE})
    recommendation = found(findings, memory_bytes=500 * MIB)

    assert recommendation.result.number == 3
    assert recommendation.memory is not None
    assert not recommendation.memory.is_objective


def app(number: int, seconds: float, error: float) -> TrialResult:
    figures = {"fit_seconds": seconds, "error": error}
    return trial(number, 1, 1, objectives=figures, measures=figures, choice={})


APP = find(
    [app(0, 2.0, 0.1), app(1, 1.0, 0.4), app(2, 1.2, 0.12)],
    study_of(3, **FREE, objectives={"error": Direction.MINIMIZE, "fit_seconds": Direction.MINIMIZE}),
)


def test_a_time_is_a_speed_of_which_less_is_better() -> None:
    assert number(APP, prefer=Prefer.SPEED) == 1
    assert number(APP, min_speed=0.8, prefer=Prefer.KNEE) == 2


def test_other_objectives_have_a_knee_too() -> None:
    assert number(APP) == 2


@pytest.mark.parametrize("wish", [{"memory_bytes": MIB}, {"prefer": Prefer.MEMORY}, {"min_speed": 0.9}])
def test_a_wish_about_what_a_study_knows_nothing_of_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no objective of memory.*error \(minimize\).*--prefer knee"):
        recommend(APP, Wish(**wish))


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01])
def test_a_least_speed_is_a_share(share: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        Wish(min_speed=share)
