from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsweep.cli.command import main
from memsweep.diff.review import Review


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where there is no project: trials and files need none."""
    monkeypatch.delenv("MEMSWEEP_CONF", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def trials(tmp_path: Path) -> tuple[str, str]:
    """Two trials of one study, the first of them the baseline."""
    folders = []
    for number, option in enumerate(("baseline", "lora")):
        folder = tmp_path / "outputs" / "s" / "trials" / str(number)
        folder.mkdir(parents=True)
        config: dict[str, Any] = {"seed": 0, "technique": {"adapter": {"option": option}}}
        if number:
            config["technique"]["adapter"]["r"] = 16
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        (folder / "effective.json").write_text(json.dumps({"adapter": {"r": 16 * number}}))
        folders.append(str(folder))
    return folders[0], folders[1]


def test_two_trials_are_compared_by_what_they_were_given_and_what_was_in_force(
    trials: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *trials]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "the trial",
        "  ~ technique/adapter: baseline -> lora",
        "    + technique.adapter.r: 16",
        "  was in force",
        "    ~ adapter.r: 0 -> 16",
    ]


def test_a_trial_is_compared_with_the_baseline_of_its_study(
    trials: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "baseline", "s/trials/1", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert data["sides"] == ["baseline, trial 0", "outputs/s/trials/1"]
    assert [one["section"] for one in data["differences"][0]["items"]] == ["switch", "in force"]


@pytest.mark.parametrize(("second", "expected"), [(0, 0), (1, 1)])
def test_the_exit_code_says_whether_something_differs(
    second: int, expected: int, trials: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", trials[0], trials[second], "--exit-code"]) == expected


@pytest.mark.parametrize(("broken", "expected"), [((), 0), (("small",), 1)])
def test_a_preset_that_composes_no_more_ends_with_1_though_nobody_asked_for_exit_codes(
    broken: tuple[str, ...],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = Review(names=("HEAD", "here"), presets=("default", "small"), broken=broken)
    monkeypatch.setattr("memsweep.cli.diff._review", lambda _: found)

    assert main(["diff"]) == expected
    assert ("1 no longer composes" in capsys.readouterr().out) is bool(broken)


def test_a_comment_names_the_command_that_prints_all(
    trials: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *trials, "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("<!-- memsweep diff -->\n")


def test_paths_that_are_ignored_do_not_count(
    trials: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ignored = ["--ignore", "technique*", "--ignore", "adapter.*"]

    assert main(["diff", *trials, "--exit-code", *ignored]) == 0


def test_bad_sides_are_refused_in_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "nowhere", "elsewhere"]) == 2

    said = capsys.readouterr().err
    assert said.startswith(
        "memsweep: 'nowhere' is no trial's folder and no config file, and here is no project"
    )
    assert "'elsewhere'" in said
    assert "a side is a git ref" in said


def test_what_follows_two_dashes_are_overrides_and_no_sides(
    trials: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *trials, "--", "trainer=dpo", "~model"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(", each with trainer=dpo ~model")


def test_config_files_of_any_kind_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("lr: 1e-4\nname: x\n")
    (tmp_path / "b.yaml").write_text("name: y\nlr: 0.0001\n")

    assert main(["diff", "a.yaml", "b.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == ["a.yaml -> b.yaml", "", "the config", "  ~ name: x -> y"]
