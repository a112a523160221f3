"""What a process's end means for its trial, and the word that its folder keeps of it.

A trial that could still speak has written outcome.json itself, and that stands.  This module speaks for
those that could not: killed, timed out, exited, crashed, never begun.
"""

from __future__ import annotations

import logging
import shlex
import signal

from memsweep.errors import IncompatibleTechniques, ProcessEnded, ProcessTimedOut, TrialError
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import (
    Crashed,
    Incompatible,
    Interrupted,
    Outcome,
    OutOfMemory,
    TimedOut,
)
from memsweep.record.trial import TrialRecord
from memsweep.trial.isolate import ProcessEnd
from memsweep.visible import visible

log = logging.getLogger(__name__)

_MEANINGS = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGABRT: "aborted: a C++ error or a failed assertion, see stderr.log",
    signal.SIGBUS: "bus error: often a full /dev/shm or a truncated file",
    signal.SIGILL: "illegal instruction: a library built for another processor",
    signal.SIGFPE: "arithmetic error",
    signal.SIGTERM: "asked to end, by another program or a person",
}


def record_of(end: ProcessEnd, folder: TrialFolder, timeout_seconds: float | None) -> TrialRecord:
    """Return how a trial ended, and see to it that its folder says so.

    Args:
        end: How its process ended.
        folder: Its folder; holds no outcome.json from before the process began.
        timeout_seconds: What it was given.
    """
    try:
        return TrialRecord.read(folder)
    except (FileNotFoundError, ValueError):  # never written, or not by us: then the process's end is all
        record = TrialRecord(
            outcome=outcome_of(end, timeout_seconds),
            seconds=end.seconds,
            facts={"start_method": end.start_method, "n_orphans": end.n_orphans},
        )
        try:
            record.write(folder)
        except OSError as error:  # a full disk, say: what is known is still returned
            log.warning("%s cannot be written: %s", folder.outcome, error)
        return record


def record_interrupted(folder: TrialFolder, reason: str = "Ctrl-C") -> None:
    """Note in a trial's folder that it was ended from outside, unless it had finished."""
    if not folder.outcome.exists():
        TrialRecord(outcome=Interrupted(reason=reason)).write(folder)


def outcome_of(end: ProcessEnd, timeout_seconds: float | None) -> Outcome:
    """Return what a process's end says of a trial that left no outcome."""
    if end.timed_out:
        return TimedOut(limit_seconds=timeout_seconds or 0.0, phase=end.phase)
    if isinstance(end.error, IncompatibleTechniques):
        return Incompatible(violations=end.error.violations)
    if isinstance(end.error, MemoryError):
        return _host_out_of_memory(end, f"MemoryError: {end.error}".rstrip(": "))
    if end.signal == signal.SIGKILL and end.n_oom_kills > 0:
        return _host_out_of_memory(
            end, "ended by SIGKILL while the kernel's count of out-of-memory kills rose (oom_kill)"
        )
    return Crashed(
        reason=_reason(end),
        phase=end.phase,
        last_lines=end.last_lines,
        process_exit_code=end.exit_code,
        signal=end.signal,
        # A process that it shared with others says nothing of the trial.  One that cannot even start will not
        # the next time either, unless somebody killed it.
        may_pass=end.template_died and (end.error is None or _was_killed(end.error)),
    )


def _was_killed(error: BaseException) -> bool:
    return isinstance(error, ProcessEnded) and error.signal == signal.SIGKILL


def error_of(record: TrialRecord, end: ProcessEnd, folder: TrialFolder) -> BaseException:
    """Return the exception that stands for a trial without a measurement; its `outcome` is the record's.

    It is the trial's own where it raised one.
    """
    error: BaseException
    if end.error is not None:
        error = end.error
    elif end.timed_out:
        error = ProcessTimedOut(explanation(record, folder))
    elif end.signal is not None or end.exit_code:
        error = ProcessEnded(explanation(record, folder), end.exit_code, end.signal)
    else:
        error = TrialError(explanation(record, folder))
    error.outcome = record.outcome  # type: ignore[attr-defined]
    return error


def explanation(record: TrialRecord, folder: TrialFolder, name: str | None = None) -> str:
    """Return what became of a trial, where to look, and what to type to see it again.

    Args:
        record: Of the trial.
        folder: Of the trial.
        name: What to call it; None means by its number.
    """
    outcome = record.outcome
    lines = [f"{name or 'trial ' + folder.path.name}: {outcome.text}"]
    if isinstance(outcome, Crashed):
        lines += [f"  {line}" for line in outcome.last_lines[-4:]]
    lines.append(f"  folder: {folder.path}  ({folder.stderr.name}, {folder.config.name})")
    if folder.overrides.exists():
        overrides = folder.overrides.read_text(encoding="utf-8").splitlines()
        lines.append(f"  repeat: {shlex.join(['python', 'train.py', *overrides])}")
    return "\n".join(lines)


def _reason(end: ProcessEnd) -> str:
    """Return one line for a crash."""
    if end.error is not None:
        text = visible(str(end.error)).strip() or "no message"
        first = text.splitlines()[0]
        return first if isinstance(end.error, TrialError) else f"{type(end.error).__name__}: {first}"
    if end.template_died:
        return "the process that it was forked from was ended, and it with that"
    if end.signal is not None:
        return _signal_text(end.signal)
    if end.has_returned:
        return "its process returned without recording an outcome"
    return f"its process exited with code {end.exit_code} before it recorded an outcome"


def _signal_text(number: int) -> str:
    if number == signal.SIGKILL:
        return (
            "killed by SIGKILL, which was not sent from here: probably the host's out-of-memory killer "
            "(see dmesg), or a person"
        )
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    meaning = _MEANINGS.get(signal.Signals(number)) if number in set(signal.Signals) else None
    return f"ended by {name}" + (f": {meaning}" if meaning else "")


def _host_out_of_memory(end: ProcessEnd, evidence: str) -> OutOfMemory:
    return OutOfMemory(
        where="host", phase=end.phase, requested_bytes=None, held_bytes=None, evidence=evidence
    )
