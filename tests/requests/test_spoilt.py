"""Whatever is spoilt at random in a request, it is answered or refused in one clear message."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from answering import Answer
from mutated import command_line, study_files
from refused import Request, unclear

FIRST, N_COMMANDS, N_FOLDERS = 20_261_130, 40, 40

Answered = Callable[[Request], tuple[Answer, list[str]]]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [command_line(FIRST + number) for number in range(N_COMMANDS)], ids=str)
def test_a_spoilt_command_line_is_answered_or_refused_and_leaves_nothing(
    asked: Request, answered: Answered
) -> None:
    answer, left = answered(asked)

    assert answer.code in (0, 2), answer.stderr
    assert list(unclear(answer)) == [], answer.stderr
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize("asked", [study_files(FIRST + number) for number in range(N_FOLDERS)], ids=str)
def test_a_question_about_a_spoilt_study_is_answered_or_refused(asked: Request, answered: Answered) -> None:
    answer, _ = answered(asked)

    # 1: recommend names no trial, because none that is left meets what was asked for.
    assert answer.code in (0, 1, 2), answer.stderr
    assert list(unclear(answer)) == [], answer.stderr
