"""The ladder that is shown: from trials that were run, and from no others."""

from __future__ import annotations

import dataclasses

import pytest

from memsweep.findings.find import find
from memsweep.findings.ladder import Ladder, best, ladder
from memsweep.record.outcome import OutOfMemory, Phase
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from synthetic import MEMORY, SPEED, ended, measured, study_of

ALL_BASELINE = {"adapter": "baseline", "checkpointing": "baseline", "packing": "baseline"}
SPEED_ONLY = {"objectives": {"tokens_per_second": Direction.MAXIMIZE}, "reference": {}, "constraints": {}}


def trial(number: int, **options: str) -> TrialResult:
    result = measured(number, {**ALL_BASELINE, **options})
    return dataclasses.replace(result, feasible=True, constraints={})


def climbed(*results: TrialResult, study: Study | None = None) -> Ladder:
    findings = find(results, study or study_of(len(results), **SPEED_ONLY))
    found = ladder(findings, findings.front)
    assert found is not None
    return found


def test_each_rung_adds_one_choice_where_the_trials_allow() -> None:
    found = climbed(
        trial(0),
        trial(1, packing="bfd"),
        trial(2, checkpointing="disabled", packing="bfd"),
    )

    assert [rung.adds for rung in found.rungs] == [("packing=bfd",), ("checkpointing=disabled",)]
    assert [rung.result.number for rung in found.rungs] == [1, 2]
    assert found.rungs[1].gains["tokens_per_second"].ratio == pytest.approx(
        SPEED["bfd"] * SPEED["disabled"], rel=1e-4
    )
    assert found.rungs[1].steps["tokens_per_second"].ratio == pytest.approx(SPEED["disabled"], rel=1e-4)


def test_what_no_trial_lies_between_is_one_rung() -> None:
    found = climbed(trial(0), trial(1, checkpointing="disabled", packing="bfd"))

    assert [rung.adds for rung in found.rungs] == [("checkpointing=disabled", "packing=bfd")]


def test_a_trial_without_figures_is_no_rung() -> None:
    memory = OutOfMemory(
        where="device", phase=Phase.BUILD, requested_bytes=None, held_bytes=None, evidence="a test"
    )
    found = climbed(
        trial(0),
        ended(1, {**ALL_BASELINE, "packing": "bfd"}, memory),
        trial(2, checkpointing="disabled", packing="bfd"),
    )

    assert [rung.result.number for rung in found.rungs] == [2]


def test_a_trial_beside_the_way_is_no_rung() -> None:
    found = climbed(trial(0), trial(1, adapter="lora"), trial(2, checkpointing="disabled", packing="bfd"))

    assert [rung.result.number for rung in found.rungs] == [2]


def test_a_choice_is_told_alone_and_on_top_of_the_others() -> None:
    found = climbed(
        trial(0),
        trial(1, packing="bfd"),
        trial(2, adapter="lora"),
        trial(3, checkpointing="disabled", packing="bfd"),
    )
    parts = {part.choice: part for part in found.parts}

    assert [part.is_in_top for part in found.parts] == [True, True, False]
    assert parts["packing=bfd"].alone_gains["tokens_per_second"].ratio == pytest.approx(
        SPEED["bfd"], rel=1e-4
    )
    assert parts["packing=bfd"].without is None
    assert parts["checkpointing=disabled"].alone is None
    assert parts["checkpointing=disabled"].top_gains["tokens_per_second"].ratio == pytest.approx(
        SPEED["disabled"], rel=1e-4
    )
    assert parts["adapter=lora"].alone_gains["tokens_per_second"].ratio == pytest.approx(
        SPEED["lora"], rel=1e-4
    )


def test_a_choice_that_was_asked_for_and_gave_no_figures_says_so() -> None:
    memory = OutOfMemory(
        where="device", phase=Phase.BUILD, requested_bytes=None, held_bytes=None, evidence="a test"
    )
    found = climbed(trial(0), ended(1, {**ALL_BASELINE, "packing": "bfd"}, memory))
    (part,) = found.parts

    assert part.alone is not None
    assert part.alone_gains == {}


def test_the_best_combination_has_the_largest_product_of_gains(study: Study) -> None:
    results = [trial(0), trial(1, checkpointing="disabled"), trial(2, packing="bfd")]
    product = {1: SPEED["disabled"] / MEMORY["disabled"], 2: SPEED["bfd"] / MEMORY["bfd"]}

    top = best(results, study)

    assert top is not None
    assert top.number == max(product, key=lambda number: product[number])


def test_without_a_baseline_there_is_no_ladder(study: Study) -> None:
    findings = find([trial(1, packing="bfd")], study)

    assert ladder(findings, findings.front) is None


def test_an_app_without_techniques_climbs_from_its_first_trial() -> None:
    study = study_of(2, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    results = [
        measured(
            n,
            {},
            parameters={"lr": lr},
            objectives={"loss": loss},
            measures={},
            constraints={},
            feasible=True,
        )
        for n, (lr, loss) in enumerate([("0.1", 2.0), ("0.2", 1.0)])
    ]

    found = climbed(*results, study=study)

    assert [rung.adds for rung in found.rungs] == [("lr=0.2",)]
    assert found.rungs[0].gains["loss"].ratio == 0.5


def test_the_start_itself_may_be_the_best() -> None:
    found = climbed(trial(0), trial(1, adapter="lora"))

    assert found.rungs == ()
    assert found.top.number == 0


def test_a_choice_with_a_key_of_its_own_is_found_alone() -> None:
    study = study_of(2, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    facts = {"measures": {}, "constraints": {}, "feasible": True}
    results = [
        measured(0, {}, parameters={"kind": "x", "wide": "1"}, objectives={"loss": 4.0}, **facts),
        measured(
            1, {}, parameters={"kind": "y", "wide": "1", "y.depth": "3"}, objectives={"loss": 2.0}, **facts
        ),
        measured(
            2, {}, parameters={"kind": "y", "wide": "2", "y.depth": "3"}, objectives={"loss": 1.0}, **facts
        ),
    ]

    found = climbed(*results, study=study)

    assert [rung.adds for rung in found.rungs] == [("kind=y",), ("wide=2",)]
    assert {part.choice: part.alone.number for part in found.parts if part.alone} == {"kind=y": 1}
