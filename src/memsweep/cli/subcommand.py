"""What subcommands share: their parser, and how a person names a study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.links import require_closed

if TYPE_CHECKING:
    from memsweep.record.study import Study
    from memsweep.record.trial import TrialResult

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # argparse has no public name for it


_DIGITS = 18


def add_study(parser: argparse.ArgumentParser) -> None:
    """Let a subcommand take a study."""
    parser.add_argument("study", metavar="STUDY", help="its folder, or its name under outputs/")


def study_folder(asked: str) -> StudyFolder:
    """Return the folder of a study that was named by its path or by its name.

    Raises:
        ConfigError: If there is none; the message lists the studies that there are.  If there is one whose
            files lie elsewhere.
    """
    for path in (Path(asked), Path("outputs") / asked):
        if _is_there(StudyFolder(path).study):
            require_closed(StudyFolder(path))
            return StudyFolder(path)
    studies = sorted(file.parent.name for file in Path("outputs").glob("*/study.json"))
    there_are = ", ".join(studies) if studies else "none; python train.py -m makes one"
    raise ConfigError(f"no study {asked!r}: it has no study.json. Studies under outputs/: {there_are}")


def whole_number(typed: str) -> int | None:
    """Return what was typed as a number of 0 or more; None where it is none, or no machine has so many."""
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) <= _DIGITS else None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # longer than names can be, or in a folder that may not be entered
        return False


def read(folder: StudyFolder) -> tuple[Study, tuple[TrialResult, ...]]:
    """Return a study and its finished trials.

    Raises:
        ConfigError: If its files cannot be read; the message names the study.
    """
    from memsweep.record.study import read_study

    try:
        return read_study(folder.path)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder.path} holds no study that can be read: {error}") from error
