"""`memsweep techniques`: every option, and the trainers it works in."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from memsweep.errors import ConfigError

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser("techniques", help="list every option and the trainers it works in")
    parser.add_argument("--trainer", help="only this one, with the reasons")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")
    form.add_argument("--json", action="store_true", help="as JSON, with every reason")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the table, or why each option works in one trainer or does not."""
    from memsweep.report.text import markdown_table, print_rows
    from memsweep.technique.catalogue import conf_folder, read_catalogue
    from memsweep.technique.support import LEGEND, by_trainer, reasons, support

    catalogue = read_catalogue(conf_folder())
    if arguments.trainer is not None and arguments.trainer not in catalogue.trainers:
        known = ", ".join(catalogue.trainers)
        raise ConfigError(f"no trainer {arguments.trainer!r}; there are {known}")
    cells = support(catalogue, [arguments.trainer] if arguments.trainer else ())
    if arguments.json:
        print(json.dumps([cell.to_mapping() for cell in cells], indent=2))
        return
    header, rows = reasons(cells) if arguments.trainer else by_trainer(cells)
    if arguments.markdown:
        print(markdown_table(header, rows))
    else:
        print_rows(header, rows)
    if not arguments.trainer:
        print(f"\n{LEGEND}")
