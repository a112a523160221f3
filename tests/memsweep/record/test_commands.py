from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from memsweep.record.commands import python_command, quoted

HOSTILE = (
    "python train.py; touch pwned",
    "python train.py && touch pwned",
    "python train.py | touch pwned",
    "python train.py $(touch pwned)",
    "python train.py `touch pwned`",
    "python train.py\ntouch pwned",
    "python train.py > pwned",
    "python train.py & touch pwned",
    "python train.py ' ; touch pwned #",
    "touch pwned",
    "sh -c 'touch pwned'",
    'python -c \'open("pwned", "w")\'',
    "X=1 touch pwned",
    "python",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_whoever_pastes_a_command_runs_nothing_but_a_script(text: str, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (tmp_path / "python").chmod(0o755)

    subprocess.run(
        ["sh", "-c", python_command(text)],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
        capture_output=True,
    )

    assert sorted(path.name for path in tmp_path.iterdir()) == ["python"]


@pytest.mark.parametrize(
    "words",
    [
        ["python", "train.py", "-m", "technique/packing=glob(*)", "a='b c'", "x=[1,2]"],
        ["python", "/some where/app.py", "db=mysql"],
        ["python", "train.py"],
    ],
)
def test_a_command_of_ours_stays_as_it_is(words: list[str]) -> None:
    assert python_command(shlex.join(words)) == shlex.join(words)


def test_words_are_the_same_words_afterwards() -> None:
    text = "app.py 'a b' c\\ d \"e;f\""

    assert shlex.split(quoted(text)) == shlex.split(text)


def test_no_command_stays_none() -> None:
    assert python_command("") == ""
