"""A finished trial: what outcome.json holds, and the line that results.jsonl has of it.

`TrialRecord` is what the trial's own process knows (or the controller, when the process could not
speak any more).  `TrialResult` adds what only the study knows: number, choice, repeats, objectives,
feasibility, front.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from memsweep.record.commands import python_command
from memsweep.record.folder import TrialFolder, read_json, write_json
from memsweep.record.outcome import Measured, Outcome, OutOfMemory, from_mapping, to_mapping
from memsweep.record.typed import require_numbers, require_types
from memsweep.visible import visible_json

RETURNED = "returned"
"""Among the facts of a record that the controller has written: what the app returned, as plain data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """What outcome.json holds.

    Attributes:
        outcome: How the trial ended.
        seconds: Seconds spent in each phase, by the names of `Phase`.
        versions: Package to version, of those that can change a result.
        effective_hash: Hash of what was in force; None when the trial did not get that far.
        facts: Anything else worth keeping: device, threads, rows of the data, parameters trained.
        conditions: What must be alike, beside the versions, for figures to be compared: the machine, the
            data; each in words.
    """

    outcome: Outcome
    seconds: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    effective_hash: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: TrialFolder) -> None:
        """Write outcome.json durably: this is the trial's commit point."""
        data = {
            "outcome": to_mapping(self.outcome),
            "seconds": dict(self.seconds),
            "versions": dict(self.versions),
            "effective_hash": self.effective_hash,
            "facts": dict(self.facts),
            "conditions": dict(self.conditions),
        }
        write_json(folder.outcome, data, durable=True)

    @classmethod
    def read(cls, folder: TrialFolder) -> TrialRecord:
        """Return what `write` wrote.

        Raises:
            FileNotFoundError: If the trial has no outcome.
            ValueError: If the file does not hold one; the message names it.
        """
        data = read_json(folder.outcome)
        try:
            facts: dict[str, Any] = {
                "outcome": from_mapping(data["outcome"], is_stored=True),
                "seconds": data.get("seconds", {}),
                "versions": data.get("versions", {}),
                "effective_hash": data.get("effective_hash"),
                "facts": data.get("facts", {}),
                "conditions": data.get("conditions", {}),
            }
            require_types(cls, facts)
            return cls(**facts)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{folder.outcome} holds no outcome: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One line of results.jsonl.

    Attributes:
        number: The trial's number; its folder is `trials/<number>`.
        outcome: How it ended.
        choice: Technique to option, complete; empty for an app without techniques.
        parameters: Every searched key to its value, as typed.
        overrides: What was passed to the trial, in order.
        objectives: Name to value, the median over its runs once there are several; empty unless measured or
            reused.
        measures: Name to value, of the first run; empty unless something was measured.
        constraints: Name to violation of the median: feasible when <= 0; of a trial that was cut short those
            that are known; else empty unless measured or reused.
        feasible: Measured (or reused), every constraint holds, and there are no `objections`.
        on_front: Feasible, and no other feasible trial dominates it.
        requested_hash: Hash of what was asked for.
        effective_hash: Hash of what was in force; None when the trial did not get that far.
        changes: What the choice changes beside speed and memory, sorted; empty when nothing.
        reused_from: Number of the trial whose measures these are; None when its own.
        seconds: Seconds by phase, and `total`.
        versions: Package to version.
        program: What repeats it, after `python`, quoted as for a shell: the script that the study ran, and
            what must be typed with it whatever the trial.
        conditions: What must be alike, beside the versions, for figures to be compared.
        repeats: How each further run of the same ended, in their order.
        unlike: How its conditions or versions differ from those of the study's first measured trial, one
            sentence each; empty when its figures may be compared with that one's.
    """

    number: int
    outcome: Outcome
    choice: Mapping[str, str]
    parameters: Mapping[str, str]
    overrides: tuple[str, ...]
    objectives: Mapping[str, float]
    measures: Mapping[str, float]
    constraints: Mapping[str, float]
    feasible: bool
    on_front: bool
    requested_hash: str
    effective_hash: str | None
    changes: tuple[str, ...]
    reused_from: int | None
    seconds: Mapping[str, float]
    versions: Mapping[str, str]
    program: str = "train.py"
    conditions: Mapping[str, str] = field(default_factory=dict)
    repeats: tuple[Outcome, ...] = ()
    unlike: tuple[str, ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data, one key an attribute."""
        data = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        repeats = [to_mapping(outcome) for outcome in self.repeats]
        return {**data, "outcome": to_mapping(self.outcome), "repeats": repeats}

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> TrialResult:
        """Return what `to_mapping` made `data` from.

        Raises:
            KeyError, TypeError, ValueError: If it is not that.
        """
        facts = dict(data)
        facts["outcome"] = from_mapping(facts["outcome"], is_stored=True)
        facts["overrides"] = tuple(facts["overrides"])
        facts["changes"] = tuple(facts["changes"])
        facts["repeats"] = tuple(
            from_mapping(outcome, is_stored=True) for outcome in facts.get("repeats", ())
        )
        facts["unlike"] = tuple(facts.get("unlike", ()))
        require_types(cls, facts)
        require_numbers(facts, "number", "reused_from")
        return cls(**facts)

    def values(self, name: str) -> tuple[float, ...]:
        """Return what each run measured of `name`, the first run's value first."""
        runs = [repeat.measures for repeat in self.repeats if isinstance(repeat, Measured)]
        return tuple(measures[name] for measures in (self.measures, *runs) if name in measures)

    @property
    def medians(self) -> dict[str, float]:
        """Every measure of the first run, the median over all runs."""
        if not self.repeats:
            return dict(self.measures)
        return {name: median(self.values(name)) for name in self.measures}

    @property
    def objections(self) -> tuple[str, ...]:
        """Why it is not on offer, whatever it measured, one sentence each; empty when it is.

        A set-up that runs out of memory in a repeat fits only sometimes: whoever trains with it for longer
        than a trial takes meets the other times too.
        """
        found = [
            f"{repeat.text} when it was measured again (repeat {number}), so it fits only sometimes"
            for number, repeat in enumerate(self.repeats, start=1)
            if isinstance(repeat, OutOfMemory)
        ]
        return (*self.unlike, *found)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know before believing its figures, one sentence each."""
        found = list(getattr(self.outcome, "remarks", ()))
        for number, repeat in enumerate(self.repeats, start=1):
            if isinstance(repeat, Measured):
                found += [f"repeat {number}: {text}" for text in repeat.remarks if text not in found]
            else:
                found.append(f"repeat {number} gave no figures: {repeat.text}")
        return tuple(found)

    @property
    def label(self) -> str:
        """The choice in a few words: `packing=bfd adapter=lora r=16`, or `baseline`."""
        options = [f"{name}={option}" for name, option in self.choice.items() if option != "baseline"]
        others = [
            f"{key.rsplit('.', 1)[-1]}={value}"
            for key, value in self.parameters.items()
            if not key.startswith("technique/")
        ]
        return " ".join(options + others) or "baseline"

    @property
    def command(self) -> str:
        """The command that repeats this trial alone, without what goes without saying."""
        has_preset = any(override.startswith("experiment=") for override in self.overrides)
        said = [
            override
            for override in self.overrides
            # A technique is at its baseline unless a preset says otherwise.
            if has_preset or not (override.startswith("technique/") and override.endswith("=baseline"))
        ]
        return python_command(f"python {self.program} {shlex.join(said)}")


def read_results(path: Path) -> tuple[TrialResult, ...]:
    """Return the trials that a results.jsonl holds, in its order.

    Raises:
        ValueError: If a line does not hold one; the message says which.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found += [TrialResult.from_mapping(visible_json(line))] if line.strip() else []
        except KeyError as error:
            raise ValueError(f"{path}, line {number}: {error} is missing") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    return tuple(found)
