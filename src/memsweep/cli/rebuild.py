"""`memsweep rebuild STUDY`: every file of a study made anew from its trial folders."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import add_study, study_folder
from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.links import require_closed

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "rebuild",
        help="make a study's files anew from its trial folders",
        description="Makes results.jsonl, front.csv, optimization_results.yaml and, where the study has it, "
        "study.db anew from trial.json and outcome.json in the trial folders.  What cannot be read is set "
        "aside as <name>.damaged-<n>.  Continuing a study does the same by itself.",
    )
    add_study(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Rebuild the study, and say what was found."""
    from memsweep.study.rebuild import rebuild

    folder = _folder(arguments.study)
    rebuilt = rebuild(folder)
    for sentence in rebuilt.notices:
        print(sentence)
    book = rebuilt.book
    print(f"{folder.path}: {len(book.results)} trial(s), {len(book.front)} on the front")
    if rebuilt.n_under_way:
        print(
            f"{rebuilt.n_under_way} were under way when their controller ended; the study's command, typed "
            "again, runs them"
        )


def _folder(asked: str) -> StudyFolder:
    """Return the folder of a study, also of one that lacks study.json: what that means is said there."""
    try:
        return study_folder(asked)
    except ConfigError:
        for path in (Path(asked), Path("outputs") / asked):
            if path.is_dir():
                require_closed(StudyFolder(path))
                return StudyFolder(path)
        raise
