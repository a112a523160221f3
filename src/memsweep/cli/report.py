"""`memsweep report STUDY`: what a study found, on the screen, as a page, as Markdown and as pictures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memsweep.cli.report_wandb import add_wandb, wandb_places
from memsweep.cli.subcommand import add_study, read, study_folder

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "report",
        help="print what a study found and make its report anew: page, Markdown, pictures",
        description="Print what a study found, and make report.html (one page that needs no network), "
        "report.md and pictures/ (SVG and PNG) in its folder anew.",
    )
    add_study(parser)
    add_wandb(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write every form of the report and print the front."""
    from memsweep.report.files import write_reports
    from memsweep.report.text import print_study

    folder = study_folder(arguments.study)
    study, results = read(folder)
    places = wandb_places(arguments, folder, study, results)
    written = write_reports(folder, results, study)
    print_study(results, study, places=[*written, *places])
