"""`memsweep report STUDY`: what a study found, on the screen and as a page."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import add_study, read, study_folder

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser("report", help="print what a study found and make its report.html anew")
    add_study(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the page and print the front."""
    from memsweep.report.html import write_report
    from memsweep.report.text import print_study

    folder = study_folder(arguments.study)
    study, results = read(folder)
    path = write_report(folder, results, study)
    print_study(results, study, places=[("report", path)])
