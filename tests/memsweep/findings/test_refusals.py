from __future__ import annotations

from memsweep.findings.find import find
from memsweep.findings.refusals import refusals
from memsweep.record.outcome import CutShort
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import ended, measured

BASELINE = {"adapter": "baseline"}


def test_every_trial_that_is_not_on_offer_is_under_one_reason(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    found = refusals(find(results, study))

    numbers = [result.number for refusal in found for result in refusal.results]
    expected = [r.number for r in results if not r.feasible and r.reused_from is None]
    assert sorted(numbers) == expected
    assert [len(refusal.results) for refusal in found] == sorted(
        (len(refusal.results) for refusal in found), reverse=True
    )


def test_trials_that_fell_to_one_rule_keep_their_figures_only_alone(study: Study) -> None:
    rule = "worse than trial 0 beyond noise"
    cut = [ended(n, BASELINE, CutShort(reason=f"{rule}: {n}00 tokens/s", measures={})) for n in (1, 2)]

    assert [one.reason for one in refusals(find(cut, study))] == [f"cut short, {rule}"]
    assert [one.reason for one in refusals(find(cut[:1], study))] == [f"cut short, {rule}: 100 tokens/s"]


def test_how_trials_ended_is_told_in_words(study: Study) -> None:
    missed = measured(0, BASELINE, constraints={"memory_budget": 5.0}, feasible=False)

    (refusal,) = refusals(find([missed], study))

    assert refusal.how == "measured, not feasible"
    assert refusal.reason.startswith("misses peak memory")
