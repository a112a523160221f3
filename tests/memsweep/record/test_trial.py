"""A finished trial survives its files, and repeats itself by one command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memsweep.record.folder import StudyFolder, TrialFolder
from memsweep.record.outcome import Crashed, Measured, OutOfMemory, Phase
from memsweep.record.trial import TrialRecord, TrialResult, read_results


def test_an_outcome_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = TrialRecord(
        outcome=Crashed(reason="a test", phase=Phase.BUILD, last_lines=("one", "two")),
        seconds={"build": 1.5},
        versions={"torch": "2.13.0"},
        effective_hash="0123456789abcdef",
        facts={"device": "cpu"},
    )
    record.write(TrialFolder(tmp_path))

    assert TrialRecord.read(TrialFolder(tmp_path)) == record


@pytest.mark.parametrize("text", ["{}", "[]", '{"outcome": {"type": "lost"}}', "no json"])
def test_a_file_that_holds_no_outcome_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "outcome.json").write_text(text)

    with pytest.raises(ValueError, match=r"outcome\.json"):
        TrialRecord.read(TrialFolder(tmp_path))


def test_a_number_that_is_none_cannot_be_written(tmp_path: Path) -> None:
    record = TrialRecord(outcome=Measured(measures={"loss": float("nan")}))

    with pytest.raises(ValueError, match="JSON"):
        record.write(TrialFolder(tmp_path))
    assert not (tmp_path / "outcome.json").exists()


def test_results_are_read_as_they_were_written(tmp_path: Path, results: tuple[TrialResult, ...]) -> None:
    path = StudyFolder(tmp_path).results
    path.write_text("".join(json.dumps(result.to_mapping()) + "\n" for result in results))

    assert read_results(path) == results


def test_a_trial_is_called_by_what_is_not_baseline(results: tuple[TrialResult, ...]) -> None:
    first = results[0]
    named = replace(first, choice={**first.choice, "packing": "bfd"}, parameters={"technique.adapter.r": "8"})

    assert first.label == "baseline"
    assert named.label == "packing=bfd r=8"


def test_the_command_that_repeats_it_survives_a_shell(results: tuple[TrialResult, ...]) -> None:
    result = replace(results[0], overrides=("x='a b'", "y=[1,2]"), program="'my app.py'")

    assert result.command == "python 'my app.py' 'x='\"'\"'a b'\"'\"'' 'y=[1,2]'"


def test_a_command_leaves_out_what_goes_without_saying(results: tuple[TrialResult, ...]) -> None:
    overrides = ("technique/packing=baseline", "technique/adapter=lora", "seed=1")
    plain = replace(results[0], overrides=overrides)
    preset = replace(results[0], overrides=("experiment=first_look", *overrides))

    assert plain.command == "python train.py technique/adapter=lora seed=1"
    assert preset.command.endswith("technique/packing=baseline technique/adapter=lora seed=1")


def test_repeats_and_conditions_survive_the_file(tmp_path: Path, results: tuple[TrialResult, ...]) -> None:
    repeats = (
        Measured(measures={"a": 1.0}, intervals={"a": (0.5, 1.5)}, remarks=("a test",)),
        Crashed(reason="a test", phase=Phase.BUILD, may_pass=True),
    )
    result = replace(results[0], repeats=repeats, conditions={"data": "a"}, unlike=("other data",))
    path = StudyFolder(tmp_path).results
    path.write_text(json.dumps(result.to_mapping()) + "\n")

    assert read_results(path) == (result,)


def test_lines_from_before_there_were_repeats_are_read(
    tmp_path: Path, results: tuple[TrialResult, ...]
) -> None:
    data = results[0].to_mapping()
    path = StudyFolder(tmp_path).results
    path.write_text(
        json.dumps({k: v for k, v in data.items() if k not in ("repeats", "conditions", "unlike")})
    )

    assert read_results(path) == (results[0],)


def test_medians_are_over_the_runs_that_were_measured(results: tuple[TrialResult, ...]) -> None:
    repeats = (
        Measured(measures={"a": 5.0}),
        Crashed(reason="a test", phase=Phase.BUILD),
        Measured(measures={"a": 2.0}),
    )
    result = replace(results[0], measures={"a": 1.0, "b": 7.0}, repeats=repeats)

    assert result.values("a") == (1.0, 5.0, 2.0)
    assert result.medians == {"a": 2.0, "b": 7.0}


def test_a_remark_of_every_run_is_told_once(results: tuple[TrialResult, ...]) -> None:
    repeats = (
        Measured(measures={}, remarks=("it was growing",)),
        Measured(measures={}, remarks=("it was busy",)),
    )
    first = Measured(measures={}, remarks=("it was growing",))
    result = replace(results[0], outcome=first, repeats=repeats)

    assert result.remarks == ("it was growing", "repeat 2: it was busy")


def test_only_a_repeat_out_of_memory_objects(results: tuple[TrialResult, ...]) -> None:
    memory = OutOfMemory(where="device", phase=Phase.BUILD, requested_bytes=1, held_bytes=1, evidence="")
    crashed = Crashed(reason="a test", phase=Phase.BUILD)

    assert replace(results[0], repeats=(crashed,)).objections == ()
    assert len(replace(results[0], repeats=(crashed, memory)).objections) == 1
