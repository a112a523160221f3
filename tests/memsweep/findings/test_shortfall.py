from __future__ import annotations

import dataclasses
from typing import Any

from memsweep.findings.find import Findings, find
from memsweep.findings.recommend import Wish
from memsweep.findings.shortfall import shortfall
from memsweep.record.trial import TrialResult
from memsweep.units import MIB
from synthetic import measured, study_of

CHANGES = {"lora": "trained_parameters"}


def trial(number: int, mebibytes: float, *, speed: float = 1_000, **options: str) -> TrialResult:
    choice = {"adapter": "baseline", "checkpointing": "baseline", "micro_batch": "baseline"} | options
    objectives = {"tokens_per_second": speed, "peak_memory_bytes": mebibytes * MIB}
    changes = tuple(CHANGES[option] for option in choice.values() if option in CHANGES)
    return dataclasses.replace(
        measured(number, {}),
        choice=choice,
        parameters={},
        objectives=objectives,
        measures=objectives,
        constraints={},
        feasible=True,
        changes=changes,
    )


def findings_of(*results: TrialResult, **facts: Any) -> Findings:
    return find(results, study_of(len(results), **{"constraints": {}} | facts))


BASELINE = trial(0, 400)
KEPT = trial(1, 600, checkpointing="disabled")
SPLIT = trial(2, 300, micro_batch="size")
ADAPTED = trial(3, 280, adapter="lora")


def test_the_nearest_miss_is_the_one_that_misses_by_least() -> None:
    found = shortfall(findings_of(BASELINE, KEPT, SPLIT), Wish(memory_bytes=200 * MIB))

    assert found.nearest is not None
    assert found.nearest.number == 2
    assert [miss.by for miss in found.misses] == [100 * MIB]
    assert found.wider is None


def test_what_accepting_more_changes_would_give_is_named() -> None:
    found = shortfall(findings_of(BASELINE, SPLIT, ADAPTED), Wish(memory_bytes=290 * MIB))

    assert found.wider is not None
    assert found.wider.result.number == 3


def test_only_choices_that_were_measured_to_save_are_named() -> None:
    """`disabled` took more, and `size` is in the nearest miss already."""
    found = shortfall(findings_of(BASELINE, KEPT, SPLIT, ADAPTED), Wish(memory_bytes=100 * MIB))

    assert found.nearest is not None
    assert found.nearest.number == 2
    assert [
        (saver.choice, round(saver.ratio, 2), saver.n_pairs, saver.changes) for saver in found.savers
    ] == [("adapter=lora", 0.7, 1, ("trained_parameters",))]


def test_a_choice_with_several_pairs_is_judged_by_their_median() -> None:
    more = [
        trial(4, 320, adapter="lora", checkpointing="disabled"),  # 0.53 of trial 1
        trial(5, 270, adapter="lora", micro_batch="size", speed=900),  # 0.9 of trial 2
    ]
    found = shortfall(
        findings_of(BASELINE, KEPT, SPLIT, ADAPTED, *more), Wish(memory_bytes=100 * MIB, changes=frozenset())
    )

    (saver,) = found.savers
    assert (saver.choice, round(saver.ratio, 2), saver.n_pairs) == ("adapter=lora", 0.7, 3)
    assert saver.together == 5


def test_a_saving_within_the_noise_is_none() -> None:
    nearly = trial(4, 399, checkpointing="full")
    found = shortfall(findings_of(BASELINE, nearly), Wish(memory_bytes=100 * MIB))

    assert found.savers == ()


def test_what_other_conditions_measured_says_nothing() -> None:
    unlike = dataclasses.replace(ADAPTED, unlike=("other machine than trial 0",), feasible=False)
    found = shortfall(findings_of(BASELINE, SPLIT, unlike), Wish(memory_bytes=100 * MIB))

    assert found.savers == ()


def test_a_study_in_which_nothing_is_feasible_has_a_nearest_miss_by_its_own_demands() -> None:
    missed = [
        dataclasses.replace(one, feasible=False, constraints={"memory_budget": by * MIB, "kept_tokens": 0.0})
        for one, by in ((BASELINE, 200.0), (SPLIT, 100.0))
    ]
    found = shortfall(find(missed, study_of(2)), Wish())

    assert found.nearest is not None
    assert found.nearest.number == 2
    assert [miss.demand.measure for miss in found.misses] == ["peak_memory_bytes"]


def test_a_study_that_measured_nothing_has_no_nearest_miss() -> None:
    found = shortfall(findings_of(), Wish())

    assert (found.nearest, found.misses, found.savers, found.wider) == (None, (), (), None)
