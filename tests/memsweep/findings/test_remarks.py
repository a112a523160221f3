from __future__ import annotations

from memsweep.findings.remarks import notes
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialResult
from synthetic import measured


def remarked(number: int, *remarks: str) -> TrialResult:
    return measured(number, {}, outcome=Measured(measures={}, remarks=remarks))


def test_remarks_that_differ_in_numbers_alone_become_one_with_ranges() -> None:
    found = notes([remarked(4, "waited 70% of 1,200 s"), remarked(0, "waited 55% of 1,200 s")])

    assert [(note.text, note.numbers) for note in found] == [("waited 55 to 70% of 1,200 s", (0, 4))]


def test_what_is_said_of_most_trials_comes_first() -> None:
    found = notes([remarked(0, "alone", "shared"), remarked(1, "shared")])

    assert [(note.text, note.numbers) for note in found] == [("shared", (0, 1)), ("alone", (0,))]


def test_one_trial_that_says_a_thing_twice_counts_once() -> None:
    assert notes([remarked(0, "grows by 1 MiB", "grows by 2 MiB")])[0].text == "grows by 1 MiB"


def test_trials_without_remarks_have_no_notes() -> None:
    assert notes([remarked(0)]) == ()
