"""What is said while a study runs."""

from __future__ import annotations

import io
import logging
import time
from dataclasses import replace

import pytest

from memsweep.record.outcome import OutOfMemory, Phase, Reused
from memsweep.study.progress import Progress, trial_line
from synthetic import measured, study_of

STUDY = study_of(24)
BASELINE = dict.fromkeys(("adapter", "checkpointing", "packing", "truncation", "micro_batch"), "baseline")
RESULT = replace(measured(17, {**BASELINE, "packing": "bfd", "adapter": "lora"}), on_front=True)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_trial_is_one_line_with_units() -> None:
    expected = "trial 17 adapter=lora packing=bfd: 1,286 tokens/s, peak memory 318.3 MiB, on the front"

    assert trial_line(RESULT, STUDY) == expected


def test_a_trial_without_figures_says_how_it_ended() -> None:
    memory = OutOfMemory(
        where="device", phase=Phase.BUILD, requested_bytes=2**30, held_bytes=None, evidence=""
    )
    result = replace(RESULT, outcome=memory, objectives={}, measures={}, constraints={})

    assert trial_line(result, STUDY).endswith(": device out of memory in build asking for 1.0 GiB")


def test_a_reused_measurement_names_its_trial() -> None:
    result = replace(RESULT, outcome=Reused(trial=3, measures=RESULT.measures), reused_from=3, on_front=False)

    assert trial_line(result, STUDY).endswith(", same set-up as trial 3")


def test_a_missed_constraint_is_said_with_its_unit() -> None:
    result = measured(3, {**BASELINE, "truncation": "max_length"})

    assert "misses kept_tokens by 2,400" in trial_line(result, STUDY)


def test_where_there_is_no_terminal_each_trial_is_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    progress = Progress("auto", 24, io.StringIO())
    with caplog.at_level(logging.INFO), progress.shown():
        progress.end(RESULT, STUDY, {"measured": 1}, 1, 1)

    assert caplog.messages == [trial_line(RESULT, STUDY)]
    assert not progress.is_live


def test_a_terminal_shows_what_runs_how_far_it_is_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    progress = Progress("auto", 24, terminal)
    with progress.shown():
        progress.end(RESULT, STUDY, {"measured": 1, "out_of_memory": 2}, 3, 1)
        progress.begin(18, "trial 18 packing=bfd")
        progress.phase(18, Phase.WARM_UP)
        time.sleep(1.2)
    shown = terminal.getvalue()

    assert progress.is_live
    assert "3/24" in shown
    assert "1 measured, 2 out of memory" in shown
    assert "front 1" in shown
    assert "left" in shown
    assert "trial 18 packing=bfd (warm up)" in shown


def test_off_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress("off", 24, io.StringIO())
    with caplog.at_level(logging.INFO), progress.shown():
        progress.end(RESULT, STUDY, {"measured": 1}, 1, 1)

    assert caplog.messages == []


def test_each_of_several_trials_has_its_own_line_and_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    progress = Progress("auto", 24, terminal)
    with progress.shown():
        progress.begin(RESULT.number, "trial 17 adapter=lora")
        progress.begin(18, "trial 18 packing=bfd")
        progress.phase(18, Phase.WARM_UP)
        progress.phase(RESULT.number, Phase.MEASURE)
        time.sleep(1.2)
        both = terminal.getvalue()
        progress.end(RESULT, STUDY, {"measured": 1}, 3, 1)
        one = terminal.getvalue()[len(both) :]

    assert "trial 17 adapter=lora (measure)" in both
    assert "trial 18 packing=bfd (warm up)" in both
    assert "trial 17 adapter=lora (measure)" not in one
    assert "trial 18 packing=bfd (warm up)" in one


def test_of_many_trials_at_once_the_rest_is_counted() -> None:
    progress = Progress("off", 24, io.StringIO())
    for number in range(20):
        progress.begin(number, f"trial {number}")

    assert progress._now() == [*(f"trial {number}" for number in range(8)), "and 12 more"]
