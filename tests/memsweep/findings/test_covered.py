"""What a study's front covers."""

from __future__ import annotations

from dataclasses import replace

from memsweep.findings.covered import covered
from synthetic import measured, study_of

STUDY = study_of(2)
BASELINE = measured(0, {"adapter": "baseline"})


def test_a_better_trial_covers_more() -> None:
    better = measured(1, {"checkpointing": "baseline", "micro_batch": "size"})
    before, after = covered(STUDY, [BASELINE]), covered(STUDY, [BASELINE, better])

    assert before is not None
    assert after is not None
    assert after > before > 0


def test_zero_on_an_axis_of_ratios_covers_nothing() -> None:
    nothing = replace(BASELINE, objectives={**BASELINE.objectives, "tokens_per_second": 0.0})

    assert covered(STUDY, [nothing]) == 0.0


def test_nothing_is_said_without_trials_or_a_corner() -> None:
    assert covered(STUDY, []) is None
    assert covered(replace(STUDY, reference={}), [BASELINE]) is None
