"""What is known of a trial while it runs, so that a failure finds it too; and the record of its end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memsweep import __version__
from memsweep.errors import ConfigError
from memsweep.machine import package_versions
from memsweep.measure.driver import device_use
from memsweep.measure.live import LiveTensors
from memsweep.measure.memory import Memory
from memsweep.measure.surroundings import Surroundings
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Outcome, Phase
from memsweep.record.trial import TrialRecord
from memsweep.trial.failure import outcome_of
from memsweep.trial.process import in_trial_process, phases, report_phase

# Those whose version can change a result.
PACKAGES = ("accelerate", "bitsandbytes", "datasets", "peft", "torch", "transformers", "trl")
VERSIONS = {"memsweep": __version__, "python": sys.version.split()[0], **package_versions(PACKAGES)}


class Ended(Exception):
    """The trial ends here, with an outcome that is no failure of the program.

    Attributes:
        outcome: How it ended.
    """

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.text)


@dataclass
class Life:
    """What is known of a trial in this process.

    Attributes:
        folder: Where effective.json and the log are written.
        phase: Where in its life it is.
        memory: What takes its peaks; None before there is a model.
        live: What follows its tensors; None unless it does.
        surroundings: How things were when the timed passes began; None before.
        uuid: Of the CUDA device; None on a CPU.
        hash: Of what is in force; None before that is known.
        facts: What is worth keeping beside the measures.
        conditions: What must be alike for figures to be compared.
    """

    folder: TrialFolder
    phase: Phase = Phase.START
    memory: Memory | None = None
    live: LiveTensors | None = None
    surroundings: Surroundings | None = None
    uuid: str | None = None
    hash: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)

    def enter(self, phase: Phase) -> None:
        """Begin a phase, and say so."""
        self.phase = phase
        report_phase(phase)

    def record(self, outcome: Outcome) -> TrialRecord:
        """Return the record of a trial that has ended so."""
        self.enter(Phase.END)
        return TrialRecord(
            outcome=outcome,
            seconds=phases() if in_trial_process() else {},
            versions=VERSIONS,
            effective_hash=self.hash,
            facts=self.facts,
            conditions=self.conditions,
        )


def lived(folder: TrialFolder, run: Callable[[Life], Outcome]) -> TrialRecord:
    """Return the record of what `run` does, however it ends."""
    life = Life(folder)
    try:
        outcome = run(life)
    except Ended as end:
        outcome = end.outcome
    except Exception as error:
        if not isinstance(error, ConfigError):
            _write_traceback(folder)
        held = life.memory.held_bytes() if life.memory else None
        outcome = outcome_of(error, life.phase, held, lambda: device_use(life.uuid))
        error.__traceback__ = None  # its frames hold the model
    return life.record(outcome)


def recorded(folder: TrialFolder, run: Callable[[Life], Outcome]) -> TrialRecord:
    """Return the record of what `run` does, and write it to the trial's folder."""
    record = lived(folder, run)
    record.write(folder)
    return record


def _write_traceback(folder: TrialFolder) -> None:
    if in_trial_process():
        traceback.print_exc()  # its stderr is the trial's log
    else:
        folder.path.mkdir(parents=True, exist_ok=True)
        with folder.stderr.open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
