from __future__ import annotations

import dataclasses
import math

import pytest

from memsweep.record.outcome import Crashed, Phase
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from memsweep.report.findings import find
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


def test_the_fastest_of_all_is_named_only_where_it_differs(study: Study) -> None:
    alone = find([measured(0, ALL_BASELINE)], study)
    both = find([measured(0, ALL_BASELINE), measured(1, {**ALL_BASELINE, "packing": "bfd"})], study)

    assert [answer.title for answer in alone.answers()] == ["Fastest", "Smallest"]
    assert "Fastest of all" in [answer.title for answer in both.answers()]


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
    assert found.comparison(lora) == ""
    assert found.kept_share(lora) is None


def test_an_app_without_techniques_has_no_baseline() -> None:
    study = study_of(1, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    result = measured(0, {}, objectives={"loss": 0.5}, measures={"loss": 0.5}, constraints={}, feasible=True)

    found = find([result], study)

    assert found.baseline is None
    assert [answer.title for answer in found.answers()] == ["Best loss"]


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
    assert found.answers() == ()
    assert found.groups() == ()
    assert found.hypervolume() is None


def test_order_of_results_does_not_matter(study: Study) -> None:
    results = trials_of_every_kind(40)

    assert find(results, study) == find(reversed(results), study)
