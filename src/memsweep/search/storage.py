"""Optuna's storages, opened so that several controllers may begin at once and damage is seen at the start."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy import event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

SQLITE = "sqlite:///"

_PAUSES_SECONDS = (0.1, 0.3, 1.0, 2.0)
"""Before each further try: two that make the tables of one database at once are in each other's way."""

_TABLES = frozenset({"studies", "version_info", "alembic_version"})
"""Some of Optuna's: another controller may be about to make the rest."""

_LOCKED_SECONDS = 60
"""How long SQLite waits for another writer."""


def file_of(url: str) -> Path | None:
    """Return the file that a URL of SQLite names; None for any other."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def problem_of(url: str) -> str | None:
    """Say in half a sentence what is wrong with a URL, as far as that can be told without opening it."""
    try:
        make_url(url).get_dialect().import_dbapi()
    except ImportError as error:
        return f"needs a package that is not installed: {error.name or error}"
    except NoSuchModuleError as error:
        return f"names no kind of database that is known here: {error}"
    except (ArgumentError, ValueError) as error:
        return f"is no URL of a database: {error}"
    file = file_of(url)
    if file is not None and not file.parent.is_dir():
        return f"is in a folder that is not there: {file.parent}"
    return f"must be a file, and {file} is a folder" if file is not None and file.is_dir() else None


def opened(url: str) -> BaseStorage:
    """Return the storage at `url`, with its tables.

    SQLite does not wait for the disk: what a loss of power costs can be made again from the trial folders,
    and waiting took 20 to 50 ms a trial.

    Raises:
        Exception: Of SQLAlchemy, SQLite or Optuna: if there is none to be had, or it is damaged.
    """
    file = file_of(url)
    if file is not None and file.is_file():
        _require_sound(file)
    for pause in _PAUSES_SECONDS:
        try:
            return _once(url, is_sqlite=file is not None)
        except SQLAlchemyError:
            if file is not None and not file.parent.is_dir():
                raise
            time.sleep(pause)
    return _once(url, is_sqlite=file is not None)


def _once(url: str, *, is_sqlite: bool) -> BaseStorage:
    if not is_sqlite:
        return RDBStorage(url)
    storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": _LOCKED_SECONDS}})
    event.listen(storage.engine, "connect", _without_waiting)
    storage.engine.dispose()  # connections made before do not know of it
    return storage


def _without_waiting(connection: Any, record: object) -> None:  # noqa: ARG001, SQLAlchemy passes both
    connection.execute("PRAGMA synchronous=OFF")


def _require_sound(file: Path) -> None:
    """Raise if a file of SQLite's is damaged, as far as it can tell, or not made by Optuna.

    Raises:
        sqlite3.DatabaseError: If so.
    """
    connection = sqlite3.connect(file, timeout=_LOCKED_SECONDS)
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    finally:
        connection.close()
    if answer != "ok":
        raise sqlite3.DatabaseError(str(answer))
    if tables and not tables & _TABLES:
        raise sqlite3.DatabaseError("it is another program's: no storage of Optuna's")
