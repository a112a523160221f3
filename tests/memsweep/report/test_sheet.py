from __future__ import annotations

from memsweep.findings.find import find
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.sheet import Sheet, facts_list


def test_what_is_in_every_view_carries_no_mark(results: tuple[TrialResult, ...], study: Study) -> None:
    sheet = Sheet.of(find(results, study))

    assert sheet.only_in(range(len(sheet.shown))) == ""
    assert sheet.only_in([0, 2]) == ' data-views="0 2"'
    assert sheet.only_in([2, 1, 2]) == ' data-views="1 2" hidden'


def test_a_text_of_several_views_is_there_once_and_escaped(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    sheet = Sheet.of(find(results, study))

    assert sheet.by_view({0: "a <b>", 1: "c", 2: "a <b>", 3: ""}, "p", "note") == (
        '<p class="note" data-views="0 2">a &lt;b&gt;</p><p class="note" data-views="1" hidden>c</p>'
    )


def test_facts_without_a_text_are_left_out() -> None:
    assert facts_list([("a", "1"), ("b", "")]) == "<dl><dt>a</dt><dd>1</dd></dl>"
    assert facts_list([("b", "")]) == ""
