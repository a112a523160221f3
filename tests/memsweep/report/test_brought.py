from __future__ import annotations

import re

from memsweep.findings.find import find
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.brought import effects_section, ladder_section
from memsweep.report.sheet import Sheet
from synthetic import measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "checkpointing": "baseline", "micro_batch": "baseline"}


def sheet_of(results: tuple[TrialResult, ...], study: Study) -> Sheet:
    return Sheet.of(find(results, study))


def test_a_rung_shows_what_it_brings_from_the_start_and_by_itself(study: Study) -> None:
    results = (
        measured(0, BASELINE),
        measured(1, {**BASELINE, "micro_batch": "size"}),
        measured(2, {**BASELINE, "micro_batch": "size", "adapter": "lora"}),
    )
    text = "".join(ladder_section(sheet_of(results, study)))

    assert '+ <span class="chip">adapter=lora</span>' in text
    assert "0.82 x" in text  # the speed of both, 0.88 times 0.93
    assert "this step 0.93 x" in text


def test_what_was_not_run_is_said_not_reckoned(study: Study) -> None:
    both = {**BASELINE, "micro_batch": "size", "adapter": "lora"}
    text = "".join(ladder_section(sheet_of((measured(0, BASELINE), measured(1, both)), study)))

    assert "no trial lies between" in text
    assert text.count("not run") == 6  # two choices alone and on top; alone in the view of the baseline


def test_each_best_combination_has_its_ladder_and_only_that_of_the_first_view_is_shown(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    sheet = sheet_of(results, study)

    marks = re.findall(r'<div data-views="([\d ]+)"( hidden)?>', "".join(ladder_section(sheet)))
    shown = [int(number) for numbers, _ in marks for number in numbers.split()]
    assert sorted(shown) == list(range(len(sheet.shown)))
    assert [not hidden for _, hidden in marks].count(True) == 1


def test_a_point_lies_right_of_the_middle_when_the_factor_is_above_one(study: Study) -> None:
    text = "".join(effects_section(sheet_of(trials_of_every_kind(32), study_of(32))))

    row = text[text.index("checkpointing=disabled") :]
    places = re.findall(r'<circle cx="([\d.]+)%', row)[:2]
    assert [float(place) > 50 for place in places] == [True, True]  # faster, and larger
    assert 'class="whisker better"' in row
    assert 'class="whisker worse"' in row


def test_too_few_trials_have_no_effects(study: Study) -> None:
    assert effects_section(sheet_of((measured(0, BASELINE),), study)) == []
    assert ladder_section(sheet_of((measured(0, BASELINE),), study)) == []
