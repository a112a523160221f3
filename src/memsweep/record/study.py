"""A study: what it set out to do, and the trials it has finished.

`Study` is study.json; the trials are results.jsonl (`memsweep.record.trial`).  What is told to the
sampler is not here: a report needs no sampler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from memsweep.record.commands import python_command
from memsweep.record.folder import StudyFolder, read_json, write_json
from memsweep.record.trial import TrialResult, read_results
from memsweep.record.typed import require_numbers, require_types

INTERRUPTED = "interrupted"
"""Why a study has ended that somebody interrupted: it is to go on."""


class Direction(StrEnum):
    """What is better in an objective."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One demand on a measure: `measure <= bound`, or `measure >= bound`.

    Attributes:
        measure: The measure it is about.
        upper: The bound is the most it may be; otherwise the least.
        bound: In the measure's unit; None while the baseline's is not known.
        of_baseline: The bound is what the baseline measured.
    """

    measure: str
    upper: bool
    bound: float | None = None
    of_baseline: bool = False

    @property
    def at_most(self) -> float | None:
        """The upper bound; None when it has a lower one, or is not known yet."""
        return self.bound if self.upper else None

    @property
    def at_least(self) -> float | None:
        """The lower bound; None when it has an upper one, or is not known yet."""
        return None if self.upper else self.bound

    def violation(self, measures: Mapping[str, float]) -> float | None:
        """Return by how much it is violated, in the measure's unit: it holds when <= 0.

        None when it cannot be judged: the trial lacks the measure, or the bound is not known yet.
        """
        value = measures.get(self.measure)
        if value is None or self.bound is None:
            return None
        return value - self.bound if self.upper else self.bound - value


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The worst corner of one objective, for hypervolumes.

    Attributes:
        value: In the objective's own unit.
        logarithmic: Ratios count on this axis, not differences.
        why: How it was chosen, in words.
    """

    value: float
    logarithmic: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What study.json holds.

    Attributes:
        name: The study's name.
        created: When it started, ISO 8601, UTC.
        command: What was typed.
        objectives: Name to direction, in the order of every table.
        constraints: Name to demand.
        reference: Objective to its worst corner; empty until it is fixed, then never changed.
        parameters: Searched key to what it may be: its labels, or its interval.
        fixed: Overrides that every trial gets, as typed.
        sampler: Its name and arguments.
        n_trials: How many trials were asked for.
        n_cells: How many legal cells the space has; None when they were not counted.
        context: What every trial has in common, by config group: trainer, model, dataset, measure.
        versions: Package to version, of those the controller uses.
        compared_with: Number of the first measured trial: only what was measured under its conditions is
            compared; None until there is one.
        conditions: That trial's conditions.
        trial_versions: That trial's versions.
        ended: Why it ended, in words; None while it runs, or when it was killed.
        fingerprint: What must stay for further trials to belong to it (`memsweep.study.fingerprint`).
        distributions: Parameter name to what Optuna draws from, as Optuna writes it.
        program: What repeats a trial of it, after `python` and before the trial's overrides.
        typed: The overrides of the command that started it last, without secrets.
        extra_trials: How many of n_trials that command has added.
        has_storage: study.db holds a copy of it for Optuna's tools; else none was wanted, or one elsewhere.
    """

    name: str
    created: str
    command: str
    objectives: Mapping[str, Direction]
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    reference: Mapping[str, Reference] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    sampler: Mapping[str, Any] = field(default_factory=dict)
    n_trials: int = 0
    n_cells: int | None = None
    context: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    compared_with: int | None = None
    conditions: Mapping[str, str] = field(default_factory=dict)
    trial_versions: Mapping[str, str] = field(default_factory=dict)
    ended: str | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    program: str = "train.py"
    typed: tuple[str, ...] = ()
    extra_trials: int = 0
    has_storage: bool = True

    def to_mapping(self) -> dict[str, Any]:
        """Return JSON-ready data, one key an attribute."""
        # A list of pairs, because the file's keys are sorted and the objectives have an order.
        objectives = [[name, direction.value] for name, direction in self.objectives.items()]
        return {**dataclasses.asdict(self), "objectives": objectives}

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Study:
        """Return what `to_mapping` made `data` from.

        Raises:
            ValueError: If it is not that.
        """
        facts = dict(data)
        try:
            facts["objectives"] = {name: Direction(text) for name, text in facts["objectives"]}
            facts["constraints"] = {name: Constraint(**node) for name, node in facts["constraints"].items()}
            facts["reference"] = {name: Reference(**node) for name, node in facts["reference"].items()}
            for name in ("fixed", "typed"):
                facts[name] = tuple(facts.get(name, ()))
            facts["command"] = python_command(facts["command"])
            for kind in ("constraints", "reference"):
                for node in facts[kind].values():
                    require_types(type(node), dataclasses.asdict(node))
            if not facts["objectives"]:
                raise ValueError("it has no objective")  # noqa: TRY301
            require_types(cls, facts)
            require_numbers(facts, "compared_with")
            return cls(**facts)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a study: {error}") from error

    def write(self, folder: StudyFolder) -> None:
        """Replace the study's study.json."""
        write_json(folder.study, self.to_mapping(), durable=True)

    @classmethod
    def read(cls, folder: StudyFolder) -> Study:
        """Return what `write` wrote.

        Raises:
            FileNotFoundError: If the folder holds no study.
            ValueError: If study.json does not hold one; the message names it.
        """
        try:
            return cls.from_mapping(read_json(folder.study))
        except ValueError as error:
            raise ValueError(f"{folder.study}: {error}") from error

    def losses(self, trials: Sequence[TrialResult]) -> list[list[float]]:
        """Return the objectives of `trials` as (n_trials, n_objectives) losses: smaller is better."""
        return [
            [
                -trial.objectives[name] if direction is Direction.MAXIMIZE else trial.objectives[name]
                for name, direction in self.objectives.items()
            ]
            for trial in trials
        ]


def read_study(path: Path) -> tuple[Study, tuple[TrialResult, ...]]:
    """Return a study and its finished trials, in the order they finished.

    Args:
        path: The study's folder.

    Raises:
        FileNotFoundError: If the folder holds no study.
        ValueError: If one of its files holds something else.
    """
    folder = StudyFolder(path)
    study = Study.read(folder)
    results = read_results(folder.results) if folder.results.exists() else ()
    for result in results:
        if result.objectives and result.objectives.keys() != study.objectives.keys():
            raise ValueError(
                f"{folder.results}: trial {result.number} has the objectives {', '.join(result.objectives)}, "
                f"and {folder.study.name} names {', '.join(study.objectives)}"
            )
    return study, results
