from __future__ import annotations

import re

from memsweep.findings.find import find
from memsweep.record.outcome import OutOfMemory, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.sheet import Sheet
from memsweep.report.tables import (
    ROWS_A_PAGE,
    SHOWN_TRIALS,
    front_table,
    refusals_table,
    time_table,
    trials_table,
    unmeasured_strip,
)
from synthetic import ended, measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}
MEMORY = OutOfMemory(
    where="device", phase=Phase.BUILD, requested_bytes=None, held_bytes=None, evidence="out of memory"
)


def sheet_of(results: tuple[TrialResult, ...], study: Study) -> Sheet:
    return Sheet.of(find(results, study))


def test_the_front_of_every_view_is_in_the_table(results: tuple[TrialResult, ...], study: Study) -> None:
    sheet = sheet_of(results, study)

    rows = re.findall(r'<tr data-trial="(\d+)"(?: data-views="([\d ]+)")?', front_table(sheet))
    found = {
        int(trial): [int(n) for n in views.split()] or list(range(len(sheet.shown))) for trial, views in rows
    }
    expected: dict[int, list[int]] = {}
    for number, view in enumerate(sheet.shown):
        for result in view.front:
            expected.setdefault(result.number, []).append(number)
    assert found == expected


def test_rows_beyond_the_first_page_are_hidden_at_first() -> None:
    text = trials_table(sheet_of(trials_of_every_kind(400), study_of(400)))

    rows = re.findall(r'<tr id="trial-\d+"[^>]*>', text)
    assert len(rows) == 400
    assert sum("hidden" not in row for row in rows) == ROWS_A_PAGE


def test_each_trial_without_figures_has_a_mark_with_its_reason(study: Study) -> None:
    many = tuple(ended(n, BASELINE, MEMORY) for n in range(1, SHOWN_TRIALS + 4))
    text = unmeasured_strip(sheet_of((measured(0, BASELINE), *many), study))

    assert text.count('title="device out of memory in build"') == len(many)
    assert "3 more" in text
    assert 'data-pick="0"' not in text


def test_where_everything_was_measured_there_is_no_strip(study: Study) -> None:
    assert unmeasured_strip(sheet_of((measured(0, BASELINE),), study)) == ""


def test_a_reason_is_told_once_with_its_trials(study: Study) -> None:
    text = refusals_table(sheet_of(tuple(ended(n, BASELINE, MEMORY) for n in range(3)), study))

    assert text.count("device out of memory in build") == 1
    assert [f'href="#trial-{n}"' in text for n in range(3)] == [True] * 3


def test_time_is_told_by_phase_and_by_ending(results: tuple[TrialResult, ...], study: Study) -> None:
    text = time_table(sheet_of(results, study))

    assert "<dt>out of memory, 3 trials</dt>" in text
    assert "building model and trainer" in text
    assert time_table(sheet_of((measured(0, BASELINE, seconds={}),), study)) == ""
