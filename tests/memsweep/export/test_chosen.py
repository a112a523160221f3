from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import yaml

from memsweep.errors import ConfigError
from memsweep.export.chosen import Chosen, chosen_trial
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Measured
from memsweep.record.study import read_study
from memsweep.record.trial import TrialRecord
from tiny import tiny_config

EFFECTIVE: dict[str, Any] = {
    "trainer": {"arguments": {"bf16": False}},
    "model": {},
    "launch": {"device": "cpu", "processes": 1},
    "environment": {},
}


@pytest.fixture
def folder(make_study: Callable[..., StudyFolder]) -> StudyFolder:
    """A study whose trial 1 has the files of a trial of train.py."""
    made = make_study()
    own = made.trial(1)
    TrialRecord(outcome=Measured(measures={}), versions={"trl": "1.16.0"}).write(own)
    own.effective.write_text(json.dumps(EFFECTIVE), encoding="utf-8")
    config = json.loads(json.dumps(asdict(tiny_config()), default=str))
    config["technique"] = {"adapter": {"option": "lora", "r": 4}}
    own.config.write_text(yaml.safe_dump({**config, "tracking": {"mode": "none"}}), encoding="utf-8")
    return made


def chosen(folder: StudyFolder, number: int) -> Chosen:
    study, results = read_study(folder.path)
    return chosen_trial(folder, study, results, number)


def test_a_measured_trial_is_read_from_its_study_and_its_folder(folder: StudyFolder) -> None:
    found = chosen(folder, 1)

    assert found.result.number == 1
    assert found.settings.adapter["r"] == 4
    assert found.record.versions == {"trl": "1.16.0"}
    assert (found.on_cpu, found.processes, found.in_force) == (True, 1, {"bf16": False})


@pytest.mark.parametrize(
    ("file", "text"), [("config", "[1"), ("config", "- 1"), ("effective", "[]"), ("outcome", "{}")]
)
def test_a_damaged_file_is_told_in_one_message(file: str, text: str, folder: StudyFolder) -> None:
    getattr(folder.trial(1), file).write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match=r"does not hold what an export is made from.*measure it again"):
        chosen(folder, 1)


def test_what_another_version_wrote_is_refused(folder: StudyFolder) -> None:
    folder.trial(1).effective.write_text("{}", encoding="utf-8")

    with pytest.raises(ConfigError, match="was written by another version"):
        chosen(folder, 1)
