from __future__ import annotations

from pathlib import Path

from memsweep.record.folder import StudyFolder
from memsweep.report.parameters import unsearched
from synthetic import measured

CONFIG = """technique:
  packing: {option: baseline}
  adapter: {option: lora, r: 16, alpha: 32}
  micro_batch: {option: size, size: 2}
"""


def folder_of(path: Path, text: str) -> StudyFolder:
    folder = StudyFolder(path)
    file = folder.trial(0).config
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return folder


def test_parameters_that_nobody_typed_are_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CONFIG)

    assert unsearched(folder, [measured(0, {})]) == ("adapter=lora r=16 alpha=32", "micro_batch=size size=2")


def test_what_was_searched_is_in_the_label_and_not_here(tmp_path: Path) -> None:
    result = measured(0, {}, parameters={"technique.micro_batch.size": "2", "technique.adapter.r": "16"})

    assert unsearched(folder_of(tmp_path, CONFIG), [result]) == ("adapter=lora alpha=32",)


def test_a_trial_without_a_configuration_has_nothing_to_tell(tmp_path: Path) -> None:
    assert unsearched(StudyFolder(tmp_path), [measured(3, {})]) == ()
    assert unsearched(folder_of(tmp_path, "x: 1\n"), [measured(0, {})]) == ()
