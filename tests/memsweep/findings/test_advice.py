from __future__ import annotations

import dataclasses
import json
from typing import Any

from memsweep.findings.advice import recommendation_lines, shortfall_lines
from memsweep.findings.advice_data import recommendation_data, shortfall_data
from memsweep.findings.find import Findings, find
from memsweep.findings.recommend import Prefer, Wish, recommend
from memsweep.findings.shortfall import shortfall
from memsweep.record.outcome import Measured
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.units import MIB
from synthetic import measured, study_of


def trial(number: int, speed: float, mebibytes: float, arm: float = 10.0, **facts: Any) -> TrialResult:
    objectives = {"tokens_per_second": speed, "peak_memory_bytes": mebibytes * MIB}
    outcome = Measured(measures=objectives, intervals={"tokens_per_second": (speed - arm, speed + arm)})
    choice = {"micro_batch": "size" if number else "baseline"}
    parameters = {"technique/micro_batch": choice["micro_batch"]}
    if number:
        parameters["technique.micro_batch.size"] = str(number)
    defaults: dict[str, Any] = {
        "choice": choice,
        "objectives": objectives,
        "measures": objectives,
        "outcome": outcome,
        "constraints": {},
        "feasible": True,
        "parameters": parameters,
    }
    return dataclasses.replace(measured(number, {}), **defaults | facts)


def findings_of(*results: TrialResult, **facts: Any) -> Findings:
    return find(results, study_of(len(results), **{"constraints": {}} | facts))


def text(findings: Findings, **wish: Any) -> str:
    found = recommend(findings, Wish(**wish))
    assert found is not None
    return "\n".join(recommendation_lines(findings, found))


THREE = findings_of(trial(0, 1_000, 400), trial(1, 2_000, 800), trial(2, 1_900, 300))


def test_the_trial_its_figures_and_the_reason_come_first() -> None:
    lines = text(THREE, memory_bytes=500 * MIB).splitlines()

    assert lines[0] == "Trial 2 of example: micro_batch=size size=2"
    assert lines[1] == (
        "  throughput 1,900 tokens/s \N{PLUS-MINUS SIGN}0.5 %, peak memory 300.0 MiB \N{PLUS-MINUS SIGN}1 %"
    )
    assert lines[2] == (
        "Why: the fastest of 2 set-ups that train exactly what the baseline trains, with peak memory at most "
        "500.0 MiB."
    )
    assert lines[3] == (
        "Against the baseline: 1.90 times its throughput (1.88 to 1.92), 0.75 times its peak memory "
        "(0.74 to 0.76)."
    )


def test_why_the_second_is_second_is_said() -> None:
    said = text(THREE, memory_bytes=1000 * MIB)

    assert "Second: trial 2, micro_batch=size size=2: throughput 1,900 tokens/s" in said
    assert (
        "Against the first 0.95 times its throughput (0.94 to 0.96) and 0.38 times its peak memory "
        "(0.37 to 0.38): its throughput is lower, by more than both may be off." in said
    )


def test_a_tie_is_said_and_so_is_which_of_the_tied_takes_less() -> None:
    findings = findings_of(
        trial(0, 1_000, 400), trial(1, 2_000, 800, arm=200), trial(2, 1_900, 300), trial(3, 1_850, 820)
    )
    said = text(findings, memory_bytes=1000 * MIB)

    assert "in throughput the two cannot be told apart (their 95 % intervals overlap)" in said
    assert "In throughput trial 3 cannot be told from the first either" in said
    assert "trial 2, micro_batch=size size=2, has 0.38 times its peak memory (0.37 to 0.38)" in said


def test_of_several_that_take_less_the_fastest_is_named() -> None:
    findings = findings_of(
        trial(0, 1_000, 400), trial(1, 2_000, 800, arm=900), trial(2, 1_900, 300), trial(3, 1_500, 290)
    )

    assert "trial 2, micro_batch=size size=2, has 0.38 times" in text(findings, memory_bytes=1000 * MIB)


def test_one_behind_the_second_may_be_tied_with_the_first_because_it_is_less_known() -> None:
    findings = findings_of(trial(0, 1_000, 400), trial(1, 2_000, 800), trial(2, 1_900, 800, arm=200))
    clear = trial(3, 1_950, 800)
    said = text(findings_of(*findings.results, clear), memory_bytes=1000 * MIB)

    assert "Second: trial 3" in said
    assert "its throughput is lower, by more than both may be off." in said
    assert (
        "Behind the second by throughput, but so little known that trial 2 cannot be told from the first"
        in said
    )


def test_a_multiple_of_a_baseline_that_is_hardly_known_says_so() -> None:
    findings = findings_of(trial(0, 1_000, 400, arm=1_500), trial(2, 1_900, 300))

    assert "1.90 times its throughput (hardly known), 0.75 times its peak memory (0.74 to 0.76)." in text(
        findings
    )


def test_of_what_the_least_speed_is_a_share_is_said() -> None:
    said = text(THREE, min_speed=0.9)

    assert "with at least 0.9 of the best speed; the best speed is that of trial 1, 2,000 tokens/s." in said


def test_one_that_fits_by_its_figure_alone_is_said_to_be_unsure() -> None:
    assert "It fits by its figure, but not surely: peak memory may be as much as 303.0 MiB." in text(
        THREE, memory_bytes=301 * MIB
    )
    assert "not surely" not in text(THREE, memory_bytes=304 * MIB)


def test_what_accepting_more_changes_would_give_is_one_line_with_what_to_type() -> None:
    unfair = trial(4, 3_800, 200, changes=("numerics",))
    said = text(findings_of(*THREE.results, unfair), memory_bytes=1000 * MIB)

    assert (
        "Accepting set-ups that change how numbers are rounded: trial 4, micro_batch=size size=4: 1.90 times "
        "its throughput (1.89 to 1.91) and 0.25 times its peak memory (0.25 to 0.25); type --changes numerics"
        in said
    )


def test_that_accepting_more_gives_nothing_is_said_where_there_is_more() -> None:
    slow = trial(4, 100, 900, changes=("numerics",))

    assert "would give nothing better" in text(findings_of(*THREE.results, slow), memory_bytes=1000 * MIB)
    assert "would give nothing better" not in text(THREE, memory_bytes=1000 * MIB)


def test_a_recommendation_that_changes_more_says_so() -> None:
    unfair = trial(4, 3_800, 200, changes=("data", "numerics"))
    said = text(findings_of(*THREE.results, unfair), changes=None)

    assert "not quite the same training: it changes what it trains on and how numbers are rounded." in said


def test_the_baseline_is_called_so() -> None:
    alone = findings_of(trial(0, 1_000, 400))

    assert "the baseline: nothing else that meets the demands is better." in text(alone)
    assert "Second: none, no other set-up meets the demands." in text(alone)


def test_what_a_study_knows_nothing_of_is_said() -> None:
    figures = {"error": 0.1}
    facts: dict[str, Any] = {"objectives": figures, "measures": figures, "choice": {}, "parameters": {}}
    findings = findings_of(trial(0, 1, 1, **facts), objectives={"error": Direction.MINIMIZE})

    said = text(findings)
    assert "The study knows nothing of memory: it is no objective, and its trials did not measure it." in said
    assert "The study knows nothing of speed" in said
    assert "There is no measured baseline to compare it with." in said


def test_a_remark_about_the_figures_is_not_left_out() -> None:
    outcome = Measured(measures={}, remarks=("the machine was busy",))

    assert "Before you believe its figures: the machine was busy." in text(
        findings_of(trial(0, 1_000, 400, outcome=outcome))
    )


def missing(findings: Findings, **wish: Any) -> str:
    return "\n".join(shortfall_lines(findings, shortfall(findings, Wish(**wish))))


def test_nothing_that_fits_gets_the_nearest_miss_and_what_saved_elsewhere() -> None:
    findings = findings_of(trial(0, 1_000, 400), trial(2, 1_900, 600), trial(1, 950, 300))
    lines = missing(findings, memory_bytes=100 * MIB).splitlines()

    assert lines == [
        "Of the set-ups of example that train exactly what the baseline trains none has peak memory at most "
        "100.0 MiB.",
        "Nearest: trial 1, micro_batch=size size=1: 950 tokens/s \N{PLUS-MINUS SIGN}1.1 %, "
        "300.0 MiB \N{PLUS-MINUS SIGN}1 %",
        "  it misses peak memory at most 100.0 MiB by 200.0 MiB",
        "No choice that it has not got was measured to save memory: search a larger space (space=...).",
    ]


def test_what_surely_fits_and_changes_least_is_offered_beside_the_fastest() -> None:
    findings = findings_of(
        trial(0, 1_000, 400),
        trial(1, 3_000, 110, changes=("data", "numerics")),
        trial(2, 1_500, 100, changes=("batch",)),
    )
    said = missing(findings, memory_bytes=round(110.5 * MIB))

    assert "It is met by set-ups that change more: trial 1" in said
    assert "type --changes data,numerics. It fits by its figure, but not surely" in said
    assert "Of those that surely meet it, this changes least: trial 2" in said
    assert said.splitlines()[4].endswith("type --changes batch.")


def test_memory_is_not_spoken_of_where_something_else_is_missed() -> None:
    lossy = trial(0, 1_000, 400, feasible=False, constraints={"kept_tokens": 2_400.0})
    said = "\n".join(shortfall_lines(one := find([lossy], study_of(1)), shortfall(one, Wish())))

    assert "Nearest: trial 0" in said
    assert "it misses kept tokens at least the baseline's (12,000) by 2,400" in said
    assert "memory" not in said.splitlines()[-1]


def test_what_saved_memory_is_told_with_its_evidence() -> None:
    def adapted(number: int, mebibytes: float, adapter: str, size: str) -> TrialResult:
        choice = {"adapter": adapter, "micro_batch": size}
        changes = ("trained_parameters",) if adapter == "lora" else ()
        return trial(number, 1_000, mebibytes, choice=choice, parameters={}, changes=changes)

    findings = findings_of(
        adapted(0, 400, "baseline", "baseline"),
        adapted(1, 300, "baseline", "size"),
        adapted(2, 320, "lora", "baseline"),
    )
    said = missing(findings, memory_bytes=100 * MIB)

    assert (
        "  adapter=lora: 0.80 times the memory (1 pair of trials that differ in it alone; it changes which "
        "parameters are trained, or how); with that set-up: not measured" in said
    )


def test_data_hold_no_number_that_was_not_measured() -> None:
    found = recommend(THREE, Wish(memory_bytes=250 * MIB, prefer=Prefer.SPEED))
    nothing = shortfall(THREE, Wish(memory_bytes=250 * MIB))

    assert found is None
    data = json.loads(json.dumps(shortfall_data(THREE, nothing)))
    assert data["trial"] is None
    assert data["nearest"]["number"] == 2
    assert data["misses"][0]["by"] == 50 * MIB


def test_data_say_the_same_as_the_words() -> None:
    wish = Wish(memory_bytes=1000 * MIB)
    found = recommend(THREE, wish)
    assert found is not None
    data = json.loads(json.dumps(recommendation_data(THREE, found)))

    assert (data["trial"]["number"], data["runner_up"]["number"], data["baseline"]["number"]) == (1, 2, 0)
    assert data["trial"]["intervals"]["tokens_per_second_low"] == 1_990
    assert data["why"] in "\n".join(recommendation_lines(THREE, found))
    assert data["accepting_any_changes"] is None
