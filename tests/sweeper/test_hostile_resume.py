"""A study that somebody else made, and that is to go on: it asks for what its command asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import Outcome

from memsweep.record.asked import Asked
from memsweep.record.folder import TrialFolder

Run = Callable[..., Outcome]

PLAIN = {"x": 0, "y": 0}


def task(number: int, values: Mapping[str, Any]) -> Any:
    return float(values["x"])


@pytest.mark.parametrize(
    "overrides",
    [
        ["x=2", "y=1", "hydra.sweep.dir=ELSEWHERE"],
        ["x=2", "y=1", "+hydra.callbacks.z={_target_: os.system, command: ls}"],
        ["x=2", "y=7"],
        ["x='$(touch pwned)'", "y=1"],
    ],
)
def test_a_trial_under_way_is_run_again_only_if_the_command_asks_for_it(
    overrides: list[str], run_sweep: Run, tmp_path: Path
) -> None:
    first = run_sweep(["x=1,2,3", "y=1"], task, config=PLAIN, sampler="grid")
    trial = TrialFolder(first.folder.trials / "1")
    trial.outcome.unlink()
    data = json.loads(trial.asked.read_text(encoding="utf-8"))
    hostile = [text.replace("ELSEWHERE", str(tmp_path / "elsewhere")) for text in overrides]
    trial.asked.write_text(json.dumps(data | {"overrides": hostile}), encoding="utf-8")

    again = run_sweep(["x=1,2,3", "y=1"], task, config=PLAIN, sampler="grid")

    assert again.exit_code == 0
    asked = {text for _, job in again.launcher.launched for text in job if not text.startswith("hydra.")}
    assert asked <= {"x=1", "x=2", "x=3", "y=1"}
    assert str(tmp_path / "elsewhere") not in str(again.launcher.launched)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "name", [".lock", "study.db", "trials/2/stderr.log", "trials/2", "report.html", ".hydra"]
)
def test_a_study_with_a_link_out_of_it_does_not_go_on(name: str, run_sweep: Run, tmp_path: Path) -> None:
    first = run_sweep(["x=1,2", "y=1"], task, config=PLAIN)
    victim = tmp_path / "profile"
    victim.write_text("precious", encoding="utf-8")
    link = first.folder.path / name
    link.unlink(missing_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)

    again = run_sweep(["x=1,2,3", "y=1"], task, config=PLAIN)

    assert again.exit_code == 2
    assert f"{link} is a link to {victim}" in again.stderr
    assert again.launcher.launched == []
    assert victim.read_text(encoding="utf-8") == "precious"


def test_an_earlier_study_with_a_link_out_of_it_teaches_nothing(run_sweep: Run, tmp_path: Path) -> None:
    first = run_sweep(["x=1,2", "y=1"], task, config=PLAIN)
    first.folder.path.rename(tmp_path / "theirs")
    (tmp_path / "theirs" / "front.csv").unlink()
    (tmp_path / "theirs" / "front.csv").symlink_to("/etc/hostname")

    again = run_sweep(["x=1,2,3", "y=1"], task, config=PLAIN, warm_start=str(tmp_path / "theirs"))

    assert again.exit_code == 2
    assert "front.csv is a link to /etc/hostname" in again.stderr


@pytest.mark.parametrize("number", [-1, "../../x", True, 1.5])
def test_a_trials_number_is_one(number: Any, run_sweep: Run) -> None:
    first = run_sweep(["x=1,2", "y=1"], task, config=PLAIN)
    trial = TrialFolder(first.folder.trials / "1")
    data = json.loads(trial.asked.read_text(encoding="utf-8"))
    trial.asked.write_text(json.dumps(data | {"number": number}), encoding="utf-8")

    with pytest.raises(ValueError, match="number must be"):
        Asked.read(trial)
    again = run_sweep(["x=1,2,3", "y=1"], task, config=PLAIN)

    assert again.exit_code == 2
    assert "no trial.json that can be read" in again.stderr
