"""The `memsweep` command: what is asked of finished studies and of the catalogue.

Trials and sweeps are run by `train.py`; nothing here trains, or imports torch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from memsweep import __version__
from memsweep.errors import ConfigError, MemsweepError
from memsweep.record.folder import StudyFolder

BAD_REQUEST = 2
"""Exit code when what was asked for is not there; argparse uses the same."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: Without the program's name; None: those of the process.
    """
    parsed = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = parsed.run
    try:
        command(parsed)
    except MemsweepError as error:
        print(f"memsweep: {error}", file=sys.stderr)
        return BAD_REQUEST
    except BrokenPipeError:  # whoever read the output has read enough: `memsweep techniques | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memsweep",
        description="What TRL's memory-saving techniques are worth on this machine.  "
        "Trials and sweeps: python train.py --help",
    )
    parser.add_argument("--version", action="version", version=f"memsweep {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    report = commands.add_parser("report", help="print what a study found and make its report.html anew")
    report.add_argument("study", metavar="STUDY", help="its folder, or its name under outputs/")
    report.set_defaults(run=_report)

    techniques = commands.add_parser("techniques", help="list every option and the trainers it works in")
    techniques.add_argument("--trainer", help="only this one, with the reasons")
    form = techniques.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")
    form.add_argument("--json", action="store_true", help="as JSON, with every reason")
    techniques.set_defaults(run=_techniques)
    return parser


def _report(arguments: argparse.Namespace) -> None:
    from memsweep.record.study import read_study
    from memsweep.report.html import write_report
    from memsweep.report.text import print_study

    folder = _study_folder(arguments.study)
    try:
        study, results = read_study(folder.path)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder.path} holds no study that can be read: {error}") from error
    path = write_report(folder, results, study)
    print_study(results, study, places=[("report", path)])


def _study_folder(asked: str) -> StudyFolder:
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


def _techniques(arguments: argparse.Namespace) -> None:
    from memsweep.report.support import LEGEND, by_trainer, reasons, support
    from memsweep.report.text import markdown_table, print_rows
    from memsweep.technique.catalogue import conf_folder, read_catalogue

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
