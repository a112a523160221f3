"""Trial folders tell what a study has run, whatever else is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.record.asked import Asked, Origin
from memsweep.record.folder import StudyFolder, TrialFolder
from memsweep.record.outcome import Interrupted, Measured
from memsweep.record.past import read_past
from memsweep.record.trial import TrialRecord

FINE = TrialRecord(outcome=Measured(measures={"speed": 1.0}), seconds={"total": 2.0})
ASKED = Asked(
    number=3,
    parameters={"x": "1"},
    overrides=("x=1",),
    choice={"adapter": "lora"},
    changes=("numerics",),
    requested_hash="abc",
    inside={"x": "1"},
    origin=Origin.SAMPLER,
    draw=2,
    again_of=1,
    elapsed_seconds=1.5,
)


def test_what_was_asked_is_read_as_it_was_written(tmp_path: Path) -> None:
    ASKED.write(TrialFolder(tmp_path))

    assert Asked.read(TrialFolder(tmp_path)) == ASKED


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"number": "x"}', '{"number": 1, "surprise": 2}'])
def test_what_says_nothing_of_a_trial_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "trial.json").write_text(text)

    with pytest.raises(ValueError, match=r"trial\.json"):
        Asked.read(TrialFolder(tmp_path))


def test_trials_are_found_wherever_an_app_puts_them(tmp_path: Path) -> None:
    for number, place in enumerate(("0", "trials/1", "a=1/b=2", "trials/3")):
        folder = TrialFolder(tmp_path / place)
        Asked(number=number, draw=number, elapsed_seconds=float(number)).write(folder)
        if number != 3:
            FINE.write(folder)
    past = read_past(StudyFolder(tmp_path))

    assert [trial.asked.number for trial in past.trials] == [0, 1, 2, 3]
    assert [trial.record is None for trial in past.trials] == [False, False, False, True]
    assert (past.next_number, past.next_draw) == (4, 4)
    assert past.elapsed_seconds == 4.0
    assert past.device_seconds == 6.0


def test_repeats_count_up_to_the_first_that_did_not_end(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path).trial(0)
    Asked(number=0).write(folder)
    for record, place in ((FINE, folder), (FINE, folder.repeat(1)), (FINE, folder.repeat(3))):
        record.write(place)
    TrialRecord(outcome=Interrupted(reason="Ctrl-C")).write(folder.repeat(2))

    assert dict(read_past(StudyFolder(tmp_path)).trials[0].repeats) == {1: FINE}


def test_a_torn_outcome_is_set_aside_and_told(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path).trial(0)
    Asked(number=0).write(folder)
    folder.outcome.write_text('{"outcome"')
    past = read_past(StudyFolder(tmp_path))

    assert past.trials[0].record is None
    assert "outcome.json.damaged-1" in past.damaged[0]
    assert (folder.path / "outcome.json.damaged-1").read_text() == '{"outcome"'


def test_an_outcome_of_nobody_is_a_strangers(tmp_path: Path) -> None:
    FINE.write(StudyFolder(tmp_path).trial(7))
    past = read_past(StudyFolder(tmp_path))

    assert past.trials == ()
    assert past.strangers == (StudyFolder(tmp_path).trial(7).path,)
