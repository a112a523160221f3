"""The `memsweep` command: what is asked of finished studies, of the catalogue, of configs and of data.

Trials and sweeps are run by `train.py`; nothing here trains.  Every subcommand is a module of this folder
with a function `add_to`, listed in `SUBCOMMANDS`; none imports at its top what only running it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from memsweep import __version__
from memsweep.cli import clean, dashboard, diff, export, lengths, rebuild, recommend, report, techniques
from memsweep.errors import MemsweepError
from memsweep.visible import visible

SUBCOMMANDS = (report, recommend, export, techniques, dashboard, diff, lengths, rebuild, clean)
"""The subcommands, in the order of the help."""

BAD_REQUEST = 2
"""Exit code when what was asked for is not there; argparse uses the same."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: Without the program's name; None: those of the process.
    """
    parser = _parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return BAD_REQUEST
    parsed = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int | None] = parsed.run
    try:
        return command(parsed) or 0
    except MemsweepError as error:
        print(f"memsweep: {visible(str(error))}", file=sys.stderr)
        return BAD_REQUEST
    except BrokenPipeError:  # whoever read the output has read enough: `memsweep techniques | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a folder that may not be written, a disk that is full
        if error.filename is None:
            raise
        print(f"memsweep: {error.filename} cannot be used: {error.strerror}", file=sys.stderr)
        return BAD_REQUEST


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memsweep",
        description="What TRL's memory-saving techniques are worth on this machine.  "
        "Trials and sweeps: python train.py --help",
    )
    parser.add_argument("--version", action="version", version=f"memsweep {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for subcommand in SUBCOMMANDS:
        subcommand.add_to(commands)
    return parser
