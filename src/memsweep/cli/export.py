"""`memsweep export STUDY TRIAL --to DIR`: a folder that trains with a trial's set-up, without memsweep."""

from __future__ import annotations

import argparse
import logging
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import add_study, read, study_folder, whole_number
from memsweep.errors import ConfigError

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "export",
        help="write a folder that trains with a trial's set-up, without memsweep",
        description="Writes a folder that trains with the set-up of a measured trial: a config.yaml for "
        "TRL's own command, or a short train.py where that cannot say it; environment, pinned requirements, "
        "data and model, and a README with what was measured.  Nothing in it needs memsweep.",
        epilog="For example: memsweep export my_study 7 --to my_run && sh my_run/run.sh --max_steps 20",
    )
    add_study(parser)
    parser.add_argument("trial", metavar="TRIAL", help="its number; memsweep recommend names one")
    parser.add_argument("--to", metavar="DIR", required=True, type=Path, help="the folder; made when missing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace what an earlier export wrote into a folder that is not empty",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the folder and print how to train with it."""
    from memsweep.export.chosen import chosen_trial
    from memsweep.export.room import require_room

    number = whole_number(arguments.trial)
    if number is None:
        raise ConfigError(f"TRIAL must be the number of a trial, e.g. 7, got {arguments.trial!r}")
    folder = study_folder(arguments.study)
    study, results = read(folder)
    chosen = chosen_trial(folder, study, results, number)
    require_room(arguments.to, is_forced=arguments.force)

    what = f"trial {chosen.result.number} of {study.name}"
    print(f"Exporting {what} to {arguments.to}; loading torch and TRL takes some 15 s ...", flush=True)
    # At import it warns that a processor lacks 4-bit kernels; the trial has been run with what there is.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from memsweep.export.write import export_trial  # imports torch and TRL: about 10 s

    done = export_trial(chosen, arguments.to, is_forced=arguments.force)
    print(f"trial {chosen.result.number}, {chosen.title}: {done.folder}")
    for name, text in {"README.md": "what was measured, what to change", **done.files}.items():
        print(f"  {name:<18} {text}")
    if done.reasons:
        print(f"A script, because TRL's own command cannot say this: {'; '.join(done.reasons)}.")
    if done.withheld:
        print(f"Secrets were not written down; set them yourself: {', '.join(done.withheld)}")
    command = shlex.join(["sh", str(done.folder / "run.sh")])
    print(f"Train: {command}, a short one: {command} --max_steps 20")
    if done.is_random:
        print("The weights in model/ are random, for a geometry was measured: README.md says where yours go.")
