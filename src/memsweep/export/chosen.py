"""The trial that is to be taken away: what it was asked to do, what was in force, what it measured.

Only a trial that was measured can be: of any other nobody knows what it takes, or whether it runs at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memsweep.config.schema import TrialConfig, trial_config
from memsweep.errors import ConfigError
from memsweep.findings.find import Findings, find
from memsweep.record.folder import StudyFolder, TrialFolder, read_json
from memsweep.record.outcome import Measured, Reused
from memsweep.record.study import Study
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.settings import Settings, merge
from memsweep.technique.yaml_text import parse_yaml
from memsweep.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A measured trial, and all that a folder is made from.

    Attributes:
        findings: What its study found.
        result: The trial, as its study shows it.
        record: What its own process knew.
        config: What it was asked to do.
        settings: What its techniques set.
        effective: What was in force before its first step.
        catalogue: The techniques.
    """

    findings: Findings
    result: TrialResult
    record: TrialRecord
    config: TrialConfig
    settings: Settings
    effective: Mapping[str, Any]
    catalogue: Catalogue

    @property
    def in_force(self) -> Mapping[str, Any]:
        """The trainer's arguments that were in force."""
        arguments: Mapping[str, Any] = self.effective["trainer"]["arguments"]
        return arguments

    @property
    def title(self) -> str:
        """The set-up with its options' parameters: `adapter=lora r=16, micro_batch=size size=2`."""
        options = [
            " ".join([f"{name}={one.option}", *(f"{key}={value}" for key, value in one.parameters.items())])
            for name, one in self.config.technique.items()
            if one.option != "baseline"
        ]
        others = [
            f"{key.rsplit('.', 1)[-1]}={value}"
            for key, value in self.result.parameters.items()
            if not key.startswith(("technique/", "technique."))
        ]
        text = ", ".join([*options, *others]) or "baseline"
        return visible(
            " ".join(text.split())
        )  # it goes into titles and comments, which a line feed would end

    @property
    def on_cpu(self) -> bool:
        """Whether it computed on a CPU."""
        return str(self.effective["launch"]["device"]).startswith("cpu")

    @property
    def processes(self) -> int:
        """How many processes it trained in."""
        return int(self.effective["launch"]["processes"])


def chosen_trial(folder: StudyFolder, study: Study, results: Iterable[TrialResult], number: int) -> Chosen:
    """Return the trial `number` of a study.

    Raises:
        ConfigError: If there is none, it was not measured, or its folder does not hold what is needed.
    """
    findings = find(results, study)
    result = _measured(findings, number)
    own = folder.trial(number)
    try:
        record = TrialRecord.read(own)
        effective = read_json(own.effective)
        config = trial_config(_composed(own))
        if set(effective) >= {"trainer", "model", "launch", "environment"}:
            catalogue = read_catalogue(conf_folder())
            settings = merge(config.technique, config.trainer.name, catalogue)
            return Chosen(
                findings=findings,
                result=result,
                record=record,
                config=config,
                settings=settings,
                effective=effective,
                catalogue=catalogue,
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{own.path} does not hold what an export is made from (config.yaml, effective.json, "
            f"outcome.json): {error}. Only trials of train.py can be exported; measure it again: "
            f"{result.command}"
        ) from error
    raise ConfigError(f"{own.effective} was written by another version; measure it again: {result.command}")


def _measured(findings: Findings, number: int) -> TrialResult:
    result = next((one for one in findings.results if one.number == number), None)
    there = ", ".join(str(one.number) for one in findings.measured) or "none"
    if result is None:
        raise ConfigError(f"{findings.study.name} has no trial {number}; those that were measured: {there}")
    if isinstance(result.outcome, Reused):
        raise ConfigError(
            f"trial {number} is the same set-up as trial {result.outcome.trial}, which measured it: export "
            f"{result.outcome.trial}"
        )
    if not isinstance(result.outcome, Measured):
        raise ConfigError(
            f"trial {number} was not measured ({result.outcome.text}), so nobody knows what training with it "
            f"takes; those that were: {there}"
        )
    return result


def _composed(folder: TrialFolder) -> dict[str, Any]:
    data = parse_yaml(folder.config.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError(f"{folder.config} must hold a mapping, got {type(data).__name__}")  # noqa: TRY004
    return data
