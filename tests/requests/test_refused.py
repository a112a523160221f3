"""Requests that cannot be meant end in one clear message and exit code 2, whatever is wrong with them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typed_commands
import typed_data
import typed_overrides
import typed_studies
from answering import MEMSWEEP, ROOT, Answer
from refused import Request, complaints

TABLES = {**typed_overrides.ALL, **typed_studies.ALL, **typed_data.ALL, **typed_commands.ALL}
LEAST = 200

Answered = Callable[[Request], tuple[Answer, list[str]]]


def rows() -> Iterator[object]:
    """Yield every request of the tables; the first of each is asked in the quick tests too."""
    for group, requests in TABLES.items():
        for place, one in enumerate(requests):
            marks = [] if place == 0 else [pytest.mark.slow]
            yield pytest.param(one, id=f"{group}: {one}", marks=marks)


@pytest.mark.parametrize("asked", list(rows()))
def test_a_request_that_cannot_be_meant_is_refused_in_one_clear_message(
    asked: Request, answered: Answered
) -> None:
    answer, left = answered(asked)

    assert list(complaints(answer, asked.says)) == [], answer.stderr
    assert left == []


def test_there_are_at_least_two_hundred_of_them() -> None:
    asked = {
        str((one.program, one.typed, one.files, one.modes)) for group in TABLES.values() for one in group
    }

    assert len(asked) >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize(
    "alone", [pytest.param(table[1], id=name) for name, table in list(TABLES.items())[:12]]
)
def test_a_process_that_is_no_fork_refuses_it_alike(alone: Request, tmp_path: Path) -> None:
    alone.prepare(tmp_path)
    program = ["-m", "memsweep"] if alone.program == MEMSWEEP else [str(ROOT / "train.py")]
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, *program, *alone.typed],
        cwd=tmp_path / "work",
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "MEMSWEEP_CACHE": str(tmp_path / "cache"),
            **alone.environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    answer = Answer(done.returncode, done.stdout, done.stderr, 0.0)
    assert list(complaints(answer, alone.says)) == [], done.stderr
