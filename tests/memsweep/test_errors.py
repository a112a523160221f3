from __future__ import annotations

import inspect
import pickle

import pytest

from memsweep import errors
from memsweep.errors import (
    ConfigError,
    IncompatibleTechniques,
    MemsweepError,
    ProcessEnded,
    StudyUnwritable,
    TrialError,
)


def test_all_broken_rules_are_told_at_once() -> None:
    error = IncompatibleTechniques(["a needs b", "c needs d"])

    assert str(error) == "2 rule(s) broken:\n  a needs b\n  c needs d"
    assert error.violations == ("a needs b", "c needs d")


@pytest.mark.parametrize(
    "error",
    [IncompatibleTechniques(["a needs b"]), ProcessEnded("killed", signal=9), ConfigError("no such thing")],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_the_way_from_a_trials_process(error: MemsweepError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_every_error_is_in_the_drawing() -> None:
    defined = [
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if kind.__module__ == errors.__name__
    ]

    assert errors.__doc__ is not None
    assert [name for name in defined if name not in errors.__doc__] == []


def test_every_error_is_the_users_or_a_trials_or_the_disks() -> None:
    kinds = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MemsweepError)
    ]

    assert [
        kind
        for kind in kinds
        if kind is not MemsweepError and not issubclass(kind, (ConfigError, TrialError, StudyUnwritable))
    ] == []
