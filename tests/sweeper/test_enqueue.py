"""Trials that a file asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import Outcome

Run = Callable[..., Outcome]
PLAIN = {"x": 0, "y": 0, "z": 0}

TEXT = """
x=3 y='a b'   # the best guess
x=7 z=1
"""
YAML = """
- {x: 3, y: a b}
- [x=7, z=1]
- x=2
"""


def task(number: int, values: Mapping[str, Any]) -> float:
    return float(values["x"])


@pytest.mark.parametrize("name, text", [("trials.txt", TEXT), ("trials.yaml", YAML)])
def test_they_come_after_the_baseline_as_they_were_written(
    run_sweep: Run, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    outcome = run_sweep(["x=range(1,5)", "y=b,'a b'"], task, config=PLAIN, enqueue=tmp_path / name)

    assert outcome.overrides[:3] == [["x=1", "y=b"], ["x=3", "y='a b'"], ["x=7", "y=b", "z=1"]]


def test_they_count_and_are_not_tried_again(run_sweep: Run, tmp_path: Path) -> None:
    (tmp_path / "trials.txt").write_text("x=2\n")
    outcome = run_sweep(["x=range(1,4)"], task, config=PLAIN, enqueue=tmp_path / "trials.txt")

    assert sorted(outcome.overrides) == [["x=1"], ["x=2"], ["x=3"]]


def test_one_that_breaks_rules_is_recorded_and_not_run(
    run_sweep: Run, technique_app: Path, tmp_path: Path
) -> None:
    (tmp_path / "trials.txt").write_text("technique/quantization=nf4\n")
    outcome = run_sweep(
        ["technique/packing=baseline,bfd"],
        lambda *_: {"speed": 1.0, "size": 1.0},
        enqueue=tmp_path / "trials.txt",
    )

    assert [result.outcome.type for result in outcome.results] == ["measured", "incompatible", "measured"]
    assert len(outcome.overrides) == 2
    assert "quantization=nf4 needs adapter=ia3 or lora" in outcome.results[1].outcome.text


def test_a_dot_for_the_slash_of_a_group_is_refused(
    run_sweep: Run, technique_app: Path, tmp_path: Path
) -> None:
    (tmp_path / "trials.txt").write_text("technique.adapter=lora\n")
    outcome = run_sweep(["technique/packing=baseline,bfd"], task, enqueue=tmp_path / "trials.txt")

    assert outcome.exit_code == 2
    assert "technique.adapter is a group: type technique/adapter=lora" in outcome.stderr


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.txt", "x=1,2\n", "is not one value"),
        ("a.txt", "hydra.verbose=true\n", "is not one value"),
        ("a.txt", "x=(\n", "trial 1"),
        ("a.txt", "x='\n", "No closing quotation"),
        ("a.yaml", "x: 1\n", "must hold a list"),
        ("a.yaml", "- 3\n", "a trial is a line"),
        ("a.yaml", "- [", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused(
    run_sweep: Run, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    outcome = run_sweep(["x=1,2"], task, config=PLAIN, enqueue=tmp_path / name)

    assert outcome.exit_code == 2
    assert message in outcome.stderr


def test_a_trial_that_nobody_could_compose_is_refused_before_anything_runs(
    run_sweep: Run, tmp_path: Path
) -> None:
    (tmp_path / "trials.txt").write_text("x=2\nnope=1\n")
    outcome = run_sweep(["x=1,2"], task, config=PLAIN, enqueue=tmp_path / "trials.txt")

    assert outcome.exit_code == 2
    assert "trials.txt, trial 2: nope is not a setting" in outcome.stderr
    assert outcome.overrides == []
