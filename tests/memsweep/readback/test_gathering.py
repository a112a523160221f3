"""Whether completions are generated on weights as they were to be held: seen in the first steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memsweep.readback.trainer_in_force import GATHERS, gathering_differences


def said(asked: bool | None, n_generations: int, n_whole: int | None) -> list[str]:
    arguments = SimpleNamespace() if asked is None else SimpleNamespace(**{GATHERS: asked})
    built: Any = SimpleNamespace(trainer=SimpleNamespace(args=arguments))
    return list(gathering_differences(built, n_generations, n_whole))


@pytest.mark.parametrize(
    ("asked", "n_generations", "n_whole"),
    [(True, 3, 3), (False, 3, 0), (True, 3, None), (False, 3, None), (None, 3, 0), (True, 0, 0)],
)
def test_what_is_held_as_it_was_asked_is_in_force(
    asked: bool | None, n_generations: int, n_whole: int | None
) -> None:
    assert said(asked, n_generations, n_whole) == []


@pytest.mark.parametrize(("asked", "n_whole"), [(True, 0), (True, 2), (False, 3), (False, 1)])
def test_what_is_held_otherwise_is_not(asked: bool, n_whole: int) -> None:
    assert said(asked, 3, n_whole) == [
        f"{GATHERS}={asked} was asked for; {n_whole} of 3 generations were on whole weights"
    ]
