"""Optuna's storages: what of a URL can be told without opening it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.search.storage import problem_of


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqllite:///x.db", "names no kind of database that is known here"),
        ("://", "is no URL of a database"),
        ("mysql://nobody@nowhere/x", "needs a package that is not installed: MySQLdb"),
        ("sqlite:////nowhere/x.db", "is in a folder that is not there: /nowhere"),
    ],
)
def test_a_url_that_cannot_be_meant_is_told_without_opening_it(url: str, problem: str) -> None:
    assert problem in (problem_of(url) or "")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "is a folder" in (problem_of(f"sqlite:///{tmp_path}") or "")


@pytest.mark.parametrize("url", ["sqlite:///study.db", "sqlite://"])
def test_what_may_be_there_is_no_problem(url: str) -> None:
    assert problem_of(url) is None
