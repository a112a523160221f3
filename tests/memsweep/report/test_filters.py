from __future__ import annotations

import re

from memsweep.findings.find import find
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.filters import filter_bar, filter_data
from memsweep.report.sheet import Sheet
from synthetic import OPTIONS, measured


def test_every_technique_and_outcome_can_be_picked(results: tuple[TrialResult, ...], study: Study) -> None:
    bar = filter_bar(Sheet.of(find(results, study)))

    assert re.findall(r"<label>(\w+)<select", bar) == [*OPTIONS, "outcome"]
    assert '<option value="1">lora</option>' in bar


def test_every_trial_is_in_the_data_with_what_it_is_picked_by(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    sheet = Sheet.of(find(results, study))
    data = filter_data(sheet)

    assert [trial[0] for trial in data["trials"]] == [result.number for result in results]
    for (_, changes, _, options, values), result in zip(data["trials"], results, strict=True):
        assert len(changes) == len(result.changes)
        assert len(options) == data["n_keys"] == len(OPTIONS)
        assert values == [result.objectives.get(name) for name in sheet.findings.objectives]
    assert [len(view["front"]) for view in data["views"]] == [len(view.front) for view in sheet.shown]


def test_a_study_that_changes_nothing_offers_no_changes(study: Study) -> None:
    bar = filter_bar(Sheet.of(find([measured(0, {"adapter": "baseline"})], study)))

    assert "compare-all" not in bar
    assert "A set-up may change" not in bar
