from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.cli.command import main
from memsweep.record.folder import StudyFolder


def test_report_makes_the_page_anew_and_prints_the_front(
    make_study: Callable[..., StudyFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study()

    assert main(["report", str(folder.path)]) == 0
    assert folder.report.exists()
    assert folder.report_markdown.exists()
    assert (folder.pictures / "front.svg").exists()
    said = capsys.readouterr().out
    assert (
        "Pareto front of example among set-ups that train exactly what the baseline trains: 3 trials" in said
    )
    assert "Pareto front of example, whatever set-ups change: 5 trials" in said


def test_a_study_is_found_by_its_name(
    make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_study()
    monkeypatch.chdir(folder.path.parents[1])

    assert main(["report", "example"]) == 0


def test_an_unknown_study_lists_those_there_are(
    make_study: Callable[..., StudyFolder],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(make_study().path.parents[1])

    assert main(["report", "exmaple"]) == 2
    assert capsys.readouterr().err == (
        "memsweep: no study 'exmaple': it has no study.json. Studies under outputs/: example\n"
    )


@pytest.mark.parametrize("damage", ["{", "[]", '{"name": "x"}'])
def test_a_damaged_study_is_named_in_one_message(
    damage: str, make_study: Callable[..., StudyFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study()
    folder.study.write_text(damage, encoding="utf-8")

    assert main(["report", str(folder.path)]) == 2
    assert str(folder.path) in capsys.readouterr().err


def test_a_damaged_line_of_results_is_named_in_one_message(
    make_study: Callable[..., StudyFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study()
    folder.results.write_text('{"number": 0}\n', encoding="utf-8")

    assert main(["report", str(folder.path)]) == 2
    assert "memsweep: " in capsys.readouterr().err


def test_techniques_lists_every_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["techniques"]) == 0
    header = capsys.readouterr().out.splitlines()[0]
    assert header.split() == ["option", "dpo", "grpo", "kto", "online_dpo", "reward", "rloo", "sft", "needs"]


def test_techniques_as_json_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["techniques", "--trainer", "dpo", "--json"]) == 0
    cells = {cell["option"]: cell for cell in json.loads(capsys.readouterr().out)}
    assert cells["packing=bfd"]["verdict"] == "no"
    assert cells["packing=bfd"]["reasons"]


def test_techniques_as_markdown_is_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["techniques", "--trainer", "sft", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["| option | sft | why |", "| --- | --- | --- |"]
    assert all(line.startswith("| ") for line in lines)


def test_an_unknown_trainer_lists_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["techniques", "--trainer", "ppo"]) == 2
    assert "there are dpo, grpo" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nonsense"], ["techniques", "--json", "--markdown"]])
def test_a_command_that_is_none_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2


def test_nothing_asked_lists_what_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "recommend" in capsys.readouterr().err


def test_a_reader_that_stops_reading_is_no_error() -> None:
    source = Path(__file__).resolve().parents[3] / "src"
    command = (
        f"PYTHONPATH={source} {sys.executable} -m memsweep techniques | head -1; exit ${{PIPESTATUS[0]}}"
    )

    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)

    assert (ended.returncode, ended.stderr) == (0, "")
