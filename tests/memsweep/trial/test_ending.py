"""What each end of a process is called, and that the folder always says so."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from memsweep.errors import IncompatibleTechniques, ProcessEnded, ProcessTimedOut, TrialError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import (
    Crashed,
    Incompatible,
    Interrupted,
    Measured,
    Outcome,
    OutOfMemory,
    Phase,
    TimedOut,
)
from memsweep.record.trial import TrialRecord
from memsweep.trial.ending import error_of, explanation, outcome_of, record_interrupted, record_of
from memsweep.trial.isolate import ProcessEnd


def end(**facts: Any) -> ProcessEnd:
    return ProcessEnd(**{"phase": Phase.WARM_UP, "seconds": {"start": 0.1, "warm_up": 2.0}, **facts})


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    folder = TrialFolder(tmp_path / "trials" / "17")
    folder.path.mkdir(parents=True)
    return folder


def crash(outcome: Outcome) -> Crashed:
    assert isinstance(outcome, Crashed)
    return outcome


def test_what_the_trial_wrote_itself_stands_however_its_process_ended(folder: TrialFolder) -> None:
    written = TrialRecord(outcome=Measured(measures={"tokens_per_second": 3.0}), effective_hash="96e3")
    written.write(folder)

    assert record_of(end(signal=signal.SIGSEGV), folder, 60.0) == written


def test_what_is_recorded_here_is_in_the_folder(folder: TrialFolder) -> None:
    record = record_of(end(exit_code=3), folder, 60.0)

    assert TrialRecord.read(folder) == record
    assert record.seconds == {"start": 0.1, "warm_up": 2.0}


def test_half_an_outcome_is_none(folder: TrialFolder) -> None:
    folder.outcome.write_text('{"outcome": {"type": "meas')

    assert isinstance(record_of(end(exit_code=3), folder, 60.0).outcome, Crashed)


def test_a_time_out_says_the_limit_and_where_it_was() -> None:
    outcome = outcome_of(end(timed_out=True, signal=signal.SIGKILL), 60.0)

    assert outcome == TimedOut(limit_seconds=60.0, phase=Phase.WARM_UP)


def test_a_sigkill_from_elsewhere_is_probably_the_out_of_memory_killers() -> None:
    outcome = crash(outcome_of(end(signal=signal.SIGKILL), 60.0))

    assert outcome.signal == signal.SIGKILL
    assert "probably the host's out-of-memory killer" in outcome.reason


def test_a_sigkill_while_the_kernel_counts_a_kill_is_out_of_memory() -> None:
    outcome = outcome_of(end(signal=signal.SIGKILL, n_oom_kills=1), 60.0)

    assert isinstance(outcome, OutOfMemory)
    assert (outcome.where, outcome.phase) == ("host", Phase.WARM_UP)
    assert "oom_kill" in outcome.evidence


def test_a_kernel_kill_of_another_process_makes_no_crash_out_of_memory() -> None:
    assert isinstance(outcome_of(end(exit_code=1, n_oom_kills=1), 60.0), Crashed)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"signal": signal.SIGSEGV}, "ended by SIGSEGV: segmentation fault"),
        ({"signal": signal.SIGUSR1}, "ended by SIGUSR1"),
        ({"signal": 63}, "ended by signal 63"),
        ({"exit_code": 3}, "its process exited with code 3 before it recorded an outcome"),
        ({"exit_code": 0}, "its process exited with code 0 before it recorded an outcome"),
        (
            {"exit_code": 0, "has_returned": True},
            "its process returned without recording an outcome",
        ),
        (
            {"template_died": True},
            "the process that it was forked from was ended, and it with that",
        ),
        ({"exit_code": 1, "error": KeyError("r")}, "KeyError: 'r'"),
        ({"exit_code": 1, "error": ValueError("first\nsecond")}, "ValueError: first"),
        ({"exit_code": 1, "error": ValueError()}, "ValueError: no message"),
        ({"error": ProcessEnded("cannot fork: no memory")}, "cannot fork: no memory"),
    ],
)
def test_a_crash_has_a_reason_of_one_line(facts: dict[str, Any], reason: str) -> None:
    assert crash(outcome_of(end(**facts), 60.0)).reason == reason


@pytest.mark.parametrize(
    ("number", "may_pass"), [(signal.SIGKILL, True), (signal.SIGABRT, False), (None, False)]
)
def test_a_template_that_somebody_killed_while_it_imported_is_worth_another_try(
    number: int | None, may_pass: bool
) -> None:
    error = ProcessEnded(
        "the process that trials are forked from ended while it was importing", signal=number
    )

    assert crash(outcome_of(end(error=error, template_died=True), None)).may_pass == may_pass


def test_a_crash_quotes_the_last_lines() -> None:
    outcome = crash(outcome_of(end(exit_code=1, last_lines=("a", "b")), 60.0))

    assert (outcome.last_lines, outcome.process_exit_code) == (("a", "b"), 1)


def test_a_memory_error_is_out_of_memory() -> None:
    outcome = outcome_of(end(exit_code=1, error=MemoryError()), 60.0)

    assert isinstance(outcome, OutOfMemory)
    assert outcome.evidence == "MemoryError"


def test_broken_rules_found_in_the_process_are_incompatible() -> None:
    outcome = outcome_of(end(exit_code=1, error=IncompatibleTechniques(["a needs b"])), 60.0)

    assert outcome == Incompatible(violations=("a needs b",))


def test_an_interruption_is_noted_unless_the_trial_had_finished(folder: TrialFolder) -> None:
    record_interrupted(folder)
    first = TrialRecord.read(folder)
    TrialRecord(outcome=Measured(measures={})).write(folder)
    record_interrupted(folder)

    assert first.outcome == Interrupted(reason="Ctrl-C")
    assert isinstance(TrialRecord.read(folder).outcome, Measured)


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"timed_out": True, "signal": 9}, ProcessTimedOut),
        ({"signal": 9}, ProcessEnded),
        ({"exit_code": 3}, ProcessEnded),
        ({"exit_code": 0}, TrialError),
        ({"exit_code": 1, "error": KeyError("r")}, KeyError),
    ],
)
def test_the_exception_for_a_failure_carries_the_outcome(
    folder: TrialFolder, facts: dict[str, Any], kind: type[BaseException]
) -> None:
    ended = end(**facts)
    record = record_of(ended, folder, 60.0)
    error = error_of(record, ended, folder)

    assert type(error) is kind
    assert error.outcome is record.outcome  # type: ignore[attr-defined]


def test_an_explanation_says_what_where_and_what_to_type(folder: TrialFolder) -> None:
    folder.overrides.write_text("trainer=dpo\ntechnique.adapter.targets=[q, v]\n")
    record = record_of(end(exit_code=1, last_lines=("x", "RuntimeError: no")), folder, 60.0)

    assert explanation(record, folder).splitlines() == [
        "trial 17: crashed in warm_up: its process exited with code 1 before it recorded an outcome",
        "  x",
        "  RuntimeError: no",
        f"  folder: {folder.path}  (stderr.log, config.yaml)",
        "  repeat: python train.py trainer=dpo 'technique.adapter.targets=[q, v]'",
    ]


def test_an_explanation_offers_no_repetition_without_overrides(folder: TrialFolder) -> None:
    record = record_of(end(exit_code=1), folder, 60.0)

    assert "repeat:" not in explanation(record, folder)
