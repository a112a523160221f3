from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from memsweep.cli.command import main
from memsweep.record.folder import StudyFolder


@pytest.fixture
def example(make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch) -> str:
    """A study that is found by its name."""
    monkeypatch.chdir(make_study().path.parents[1])
    return "example"


def test_one_trial_is_named_with_what_to_do_next(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", example, "--memory", "1GiB"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Trial 9 of example: checkpointing=disabled micro_batch=size"
    assert any(line.startswith("Second: ") for line in lines)
    assert lines[-2].startswith("Measure it again: python train.py ")
    assert lines[-1] == "Train with it:    memsweep export example 9 --to example-9"


def test_a_quick_study_warns_that_its_figures_are_not_for_quoting(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recommend", example])

    assert "Quick figures show large differences" in capsys.readouterr().out


def test_json_names_the_same_trial(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["recommend", example, "--memory", "1GiB"])
    words = capsys.readouterr().out
    assert main(["recommend", example, "--memory", "1GiB", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert words.startswith(f"Trial {data['trial']['number']} of example")
    assert data["wish"] == {"memory_bytes": 1 << 30, "min_speed": None, "prefer": "speed", "changes": []}
    assert data["export"].startswith("memsweep export example ")


def test_nothing_that_fits_exits_with_1_and_the_nearest_miss(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", example, "--memory", "10MiB"]) == 1
    assert "Nearest: trial " in capsys.readouterr().out
    assert main(["recommend", example, "--memory", "10MiB", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["trial"] is None


def test_accepting_changes_is_asked_for(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["recommend", example, "--memory", "1GiB", "--json"])
    fair = json.loads(capsys.readouterr().out)
    main(["recommend", example, "--memory", "1GiB", "--json", "--any-changes"])
    anything = json.loads(capsys.readouterr().out)

    assert fair["trial"]["changes"] == []
    assert anything["trial"]["changes"] != []
    assert fair["accepting_any_changes"]["number"] == anything["trial"]["number"]
    main(
        [
            "recommend",
            example,
            "--memory",
            "1GiB",
            "--json",
            "--changes",
            ",".join(anything["trial"]["changes"]),
        ]
    )
    assert json.loads(capsys.readouterr().out)["trial"] == anything["trial"]


def test_all_that_cannot_be_meant_is_told_at_once(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--memory", "24", "--min-speed", "90%", "--changes", "numerics,speed"]
    assert main(["recommend", example, *words]) == 2

    said = capsys.readouterr().err
    assert "--memory must be memory above 0 with its unit" in said
    assert "e.g. 0.9, got '90%'" in said
    assert "--changes must be among numerics, batch, trained_parameters, data, got speed" in said


@pytest.mark.parametrize("words", [["--prefer", "cheap"], ["--changes", "data", "--any-changes"]])
def test_what_the_parser_refuses_exits_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["recommend", "example", *words])

    assert ended.value.code == 2
