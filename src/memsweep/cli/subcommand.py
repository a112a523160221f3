"""What subcommands share: their parser, and how a person names a study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder

if TYPE_CHECKING:
    from memsweep.record.study import Study
    from memsweep.record.trial import TrialResult

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # argparse has no public name for it


def add_study(parser: argparse.ArgumentParser) -> None:
    """Let a subcommand take a study."""
    parser.add_argument("study", metavar="STUDY", help="its folder, or its name under outputs/")


def study_folder(asked: str) -> StudyFolder:
    """Return the folder of a study that was named by its path or by its name.

    Raises:
        ConfigError: If there is none; the message lists the studies that there are.
    """
    for path in (Path(asked), Path("outputs") / asked):
        if StudyFolder(path).study.exists():
            return StudyFolder(path)
    studies = sorted(file.parent.name for file in Path("outputs").glob("*/study.json"))
    there_are = ", ".join(studies) if studies else "none; python train.py -m makes one"
    raise ConfigError(f"no study {asked!r}: it has no study.json. Studies under outputs/: {there_are}")


def read(folder: StudyFolder) -> tuple[Study, tuple[TrialResult, ...]]:
    """Return a study and its finished trials.

    Raises:
        ConfigError: If its files cannot be read; the message names the study.
    """
    from memsweep.record.study import read_study

    try:
        return read_study(folder.path)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder.path} holds no study that can be read: {error}") from error
