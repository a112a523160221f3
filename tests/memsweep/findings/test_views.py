from __future__ import annotations

from memsweep.findings.find import find
from memsweep.findings.views import change_words, first_view, view, views
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import measured

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def test_every_set_of_changes_has_a_view_the_smallest_first(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    shown = views(find(results, study))

    assert len(shown) == 2 ** len(change_words(find(results, study)))
    assert shown[0].accepted == ()
    assert shown[-1].accepted == change_words(find(results, study))


def test_a_view_compares_only_what_changes_no_more_than_is_accepted(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    findings = find(results, study)

    for one in views(findings):
        assert all(set(result.changes) <= set(one.accepted) for result in one.candidates)
        assert {result.number for result in one.front} <= {result.number for result in one.candidates}
    assert view(findings, ()).front == findings.same_front
    assert view(findings, change_words(findings)).front == findings.front


def test_what_more_changes_would_beat_is_on_the_front_of_those_that_train_the_same(study: Study) -> None:
    findings = find([measured(0, BASELINE), measured(1, {**BASELINE, "packing": "bfd"})], study)

    assert [result.number for result in view(findings, ()).front] == [0]
    assert [result.number for result in view(findings, ("batch",)).front] == [1]


def test_the_first_view_is_the_strictest_that_has_a_front(study: Study) -> None:
    infeasible = measured(0, BASELINE, feasible=False)
    findings = find([infeasible, measured(1, {**BASELINE, "packing": "bfd"})], study)

    assert first_view(views(findings)).accepted == ("batch",)
    assert first_view(views(find([infeasible], study))).accepted == ()


def test_an_app_without_changes_has_one_view(study: Study) -> None:
    assert [one.accepted for one in views(find([measured(0, BASELINE)], study))] == [()]
