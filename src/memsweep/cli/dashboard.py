"""`memsweep dashboard STUDY`: a study in Optuna's own dashboard, on this machine alone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import add_study, study_folder, whole_number

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers

HIGHEST_PORT = 65_535


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "dashboard",
        help="look at a study in Optuna's dashboard, while it runs too",
        description="Serves Optuna's own dashboard on this machine alone, with the feasible front as the "
        "picture that counts, and a note and the files of each trial.  It follows a study that runs, changes "
        "nothing, and ends with Ctrl-C.  It needs: pip install 'memsweep[dashboard]'",
    )
    add_study(parser)
    parser.add_argument(
        "--port",
        type=_port,
        metavar="P",
        help="where to listen; 0: any that is free; without it: 8080, or the next that is free",
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    from memsweep.dashboard.server import require_dashboard, serve

    require_dashboard()
    folder = study_folder(arguments.study)
    serve(folder, arguments.port, opens=arguments.open, say=_say)


def _say(line: str) -> None:
    print(line, flush=True)  # whoever reads it through a pipe waits for the address


def _port(typed: str) -> int:
    port = whole_number(typed)
    if port is None or port > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to {HIGHEST_PORT}, got {typed!r}")
    return port
