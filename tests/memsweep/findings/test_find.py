from __future__ import annotations

import dataclasses
import math

import pytest

from memsweep.findings.find import find
from memsweep.record.outcome import Crashed, Measured, Phase, Reused
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from synthetic import ended, measured, study_of, trials_of_every_kind

ALL_BASELINE = {"adapter": "baseline", "packing": "baseline", "checkpointing": "baseline"}


def test_every_trial_is_counted_once(results: tuple[TrialResult, ...], study: Study) -> None:
    found = find(results, study)

    assert sum(found.counts().values()) == 24
    assert found.counts()["out_of_memory"] == 3


def test_a_trial_without_figures_is_not_among_the_measured(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    found = find(results, study)

    assert all(result.outcome.type not in ("measured", "reused") for result in found.unmeasured)
    assert all(result.objectives for result in found.measured)
    reused = [result for result in results if result.reused_from is not None]
    assert len(found.measured) + len(found.unmeasured) + len(reused) == len(results)


def test_the_front_holds_no_infeasible_and_no_dominated_trial(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    found = find(results, study)

    assert found.front
    for member in found.front:
        assert member.feasible
        speed, memory = member.objectives["tokens_per_second"], member.objectives["peak_memory_bytes"]
        for other in found.measured:
            if other.feasible:
                better_speed = other.objectives["tokens_per_second"] > speed
                better_memory = other.objectives["peak_memory_bytes"] < memory
                no_worse = (
                    other.objectives["tokens_per_second"] >= speed
                    and other.objectives["peak_memory_bytes"] <= memory
                )
                assert not (no_worse and (better_speed or better_memory))


def test_the_flag_in_a_line_of_results_is_not_believed(study: Study) -> None:
    stale = measured(0, ALL_BASELINE, on_front=True)
    better = measured(1, {**ALL_BASELINE, "packing": "bfd"}, on_front=False)

    assert [result.number for result in find([stale, better], study).front] == [1]


def test_set_ups_that_train_the_same_have_a_front_of_their_own(study: Study) -> None:
    baseline = measured(0, ALL_BASELINE)
    other_batch = measured(1, {**ALL_BASELINE, "packing": "bfd"})

    found = find([baseline, other_batch], study)

    assert [result.number for result in found.same_front] == [0]
    assert [group.changes for group in found.groups()] == [(), ("batch",)]


def test_ratios_are_multiples_of_the_baseline(study: Study) -> None:
    found = find([measured(0, ALL_BASELINE), measured(1, {**ALL_BASELINE, "adapter": "lora"})], study)

    assert found.ratio(found.results[1], "peak_memory_bytes") == pytest.approx(0.82)
    assert found.ratio(found.results[0], "peak_memory_bytes") == 1


def test_a_baseline_that_crashed_compares_with_nothing(study: Study) -> None:
    crashed = ended(0, ALL_BASELINE, Crashed(reason="no", phase=Phase.BUILD))
    lora = measured(1, {**ALL_BASELINE, "adapter": "lora"})

    found = find([crashed, lora], study)

    assert found.baseline is None
    assert found.ratio(lora, "tokens_per_second") is None
    assert found.kept_share(lora) is None


def test_an_app_without_techniques_has_no_baseline() -> None:
    study = study_of(1, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    result = measured(0, {}, objectives={"loss": 0.5}, measures={"loss": 0.5}, constraints={}, feasible=True)

    found = find([result], study)

    assert found.baseline is None


def test_hypervolume_is_that_of_the_ratios_to_the_corner(study: Study) -> None:
    result = measured(0, ALL_BASELINE)
    speed, memory = result.objectives["tokens_per_second"], result.objectives["peak_memory_bytes"]
    corner = {name: at.value for name, at in study.reference.items()}

    expected = math.log(speed / corner["tokens_per_second"]) * math.log(corner["peak_memory_bytes"] / memory)
    assert find([result], study).hypervolume() == pytest.approx(expected)


def test_hypervolume_waits_for_its_reference_point(study: Study) -> None:
    unfixed = dataclasses.replace(study, reference={})

    assert find([measured(0, ALL_BASELINE)], unfixed).hypervolume() is None


def test_a_study_without_trials_finds_nothing(study: Study) -> None:
    found = find([], study)

    assert found.front == ()
    assert found.groups() == ()
    assert found.hypervolume() is None


def test_order_of_results_does_not_matter(study: Study) -> None:
    results = trials_of_every_kind(40)

    assert find(results, study) == find(reversed(results), study)


def known(number: int, option: str, half: float) -> TrialResult:
    """Return a trial whose throughput is known to +- `half`, as a share."""
    result = measured(number, {**ALL_BASELINE, "packing": option})
    speed = result.objectives["tokens_per_second"]
    intervals = {"tokens_per_second": (speed * (1 - half), speed * (1 + half))}
    return dataclasses.replace(result, outcome=Measured(measures=result.measures, intervals=intervals))


def test_members_that_cannot_be_told_apart_are_tied(study: Study) -> None:
    one = known(0, "baseline", 0.1)
    memory = {"peak_memory_bytes": one.objectives["peak_memory_bytes"] * 1.01}
    other = dataclasses.replace(
        one,
        number=1,
        objectives={"tokens_per_second": one.objectives["tokens_per_second"] * 1.01, **memory},
        measures={**one.measures, **memory},
    )

    found = find([one, other], study)

    assert found.tied == {0: (1,), 1: (0,)}
    assert found.contenders == {}


def test_a_trial_off_the_front_that_cannot_be_told_from_a_member_is_named(study: Study) -> None:
    sure = find([known(0, "baseline", 0.01), known(1, "bfd", 0.01)], study)
    memory = {"peak_memory_bytes": 1.0}
    same_memory = [
        dataclasses.replace(
            result, objectives={**result.objectives, **memory}, measures={**result.measures, **memory}
        )
        for result in (known(0, "baseline", 0.2), known(1, "bfd", 0.2))
    ]
    unsure = find(same_memory, study)

    assert (sure.contenders, unsure.contenders) == ({}, {0: (1,)})
    assert [result.number for result in unsure.front] == [1]


def test_what_is_not_feasible_contends_for_nothing(study: Study) -> None:
    member = known(0, "baseline", 0.2)
    unlike = dataclasses.replace(
        member, number=1, feasible=False, unlike=("other data than trial 0: a, not b",)
    )

    assert find([member, unlike], study).contenders == {}


def test_a_figure_carries_its_interval(study: Study) -> None:
    result = known(0, "baseline", 0.03)
    found = find([result], study)

    assert found.sentence(result) == "1,172 tokens/s \N{PLUS-MINUS SIGN}3 %, 413.0 MiB \N{PLUS-MINUS SIGN}1 %"


def test_a_reused_measurement_has_the_interval_of_its_source(study: Study) -> None:
    source = known(0, "baseline", 0.03)
    reused = dataclasses.replace(
        source, number=1, outcome=Reused(trial=0, measures=source.measures), reused_from=0
    )
    found = find([source, reused], study)

    assert found.interval(reused, "tokens_per_second") == found.interval(source, "tokens_per_second")
