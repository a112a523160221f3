"""`memsweep recommend STUDY`: one trial of a study by what a person wants, and why."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import add_study, read, study_folder
from memsweep.errors import ConfigError

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers
    from memsweep.findings.recommend import Wish

NOTHING_FITS = 1
"""Exit code when no trial meets the demands."""

PREFERENCES = ("memory", "speed", "knee")


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "recommend",
        help="name one trial of a study that fits what you want, and say why",
        description="Names one trial and says why, against the baseline and the runner-up.  Exit code 0 when "
        "one is named, 1 when none meets the demands: then it tells the nearest miss, and what was measured "
        "to save memory.",
        epilog="For example: memsweep recommend my_study --memory 24GiB --min-speed 0.9",
    )
    add_study(parser)
    parser.add_argument("--memory", metavar="SIZE", help="the most memory it may take: 24GiB, 24GB, 512MiB")
    parser.add_argument(
        "--min-speed",
        metavar="SHARE",
        help="the least speed, as a share of the best among what fits: 0.9",
    )
    parser.add_argument(
        "--prefer",
        choices=PREFERENCES,
        help="what decides among those; without it: speed with --memory, memory with --min-speed, else knee, "
        "the best compromise",
    )
    accepted = parser.add_mutually_exclusive_group()
    accepted.add_argument(
        "--changes",
        metavar="WHAT",
        help="accept set-ups that change no more than this beside speed and memory, of numerics, batch, "
        "trained_parameters, data: --changes numerics,batch; without it only those that train exactly what "
        "the baseline trains",
    )
    accepted.add_argument("--any-changes", action="store_true", help="accept set-ups that change anything")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the trial and the reasons; return the exit code."""
    from memsweep.findings.advice import recommendation_lines, shortfall_lines
    from memsweep.findings.advice_data import recommendation_data, shortfall_data
    from memsweep.findings.find import find
    from memsweep.findings.peak import peak_text
    from memsweep.findings.recommend import recommend
    from memsweep.findings.shortfall import shortfall
    from memsweep.findings.words import caution
    from memsweep.report.circumstances import recorded_facts
    from memsweep.report.parameters import unsearched

    wish = _wish(arguments)
    folder = study_folder(arguments.study)
    study, results = read(folder)
    findings = find(results, study)
    meaning = peak_text(recorded_facts(folder, findings))
    try:
        found = recommend(findings, wish)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if found is None:
        missing = shortfall(findings, wish)
        if arguments.json:
            print(json.dumps(shortfall_data(findings, missing), indent=2))
        else:
            print("\n".join([*shortfall_lines(findings, missing), *filter(None, [meaning])]))
        return NOTHING_FITS
    number = str(found.result.number)
    place = re.sub(r"[^\w.-]+", "-", study.name).strip(".-")  # whatever it says, a folder here
    words = ["memsweep", "export", arguments.study, number, "--to", f"{place or 'study'}-{number}"]
    export = shlex.join(words)
    if arguments.json:
        print(json.dumps({**recommendation_data(findings, found), "export": export}, indent=2))
        return 0
    said = [*recommendation_lines(findings, found), meaning, caution(study)]
    print("\n".join(line for line in said if line))
    if chosen := unsearched(folder, [found.result]):
        print(f"Its parameters:   {', '.join(chosen)}")
    print(f"Measure it again: {found.result.command}")
    print(f"Train with it:    {export}")
    return 0


def _wish(arguments: argparse.Namespace) -> Wish:
    """Return what is wanted.

    Raises:
        ConfigError: For all that cannot be meant at once.
    """
    from memsweep.findings.recommend import Prefer, Wish
    from memsweep.findings.words import CHANGES
    from memsweep.units import read_bytes

    problems, memory, share = [], None, None
    if arguments.memory is not None:
        try:
            memory = read_bytes(arguments.memory)
        except ValueError as error:
            problems.append(f"--memory {error}")
    if arguments.min_speed is not None:
        try:
            share = float(arguments.min_speed)
        except ValueError:
            share = 0.0
        if not 0 < share <= 1:
            problems.append(
                "--min-speed must be a share of the best speed, above 0 and at most 1, e.g. 0.9, "
                f"got {arguments.min_speed!r}"
            )
    asked = (arguments.changes or "").replace(" ", "").split(",")
    changes = frozenset(word for word in asked if word)
    unknown = sorted(changes - set(CHANGES))
    if unknown:
        problems.append(f"--changes must be among {', '.join(CHANGES)}, got {', '.join(unknown)}")
    if problems:
        raise ConfigError("\n".join(problems))
    prefer = None if arguments.prefer is None else Prefer(arguments.prefer)
    return Wish(
        memory_bytes=memory,
        min_speed=share,
        prefer=prefer,
        changes=None if arguments.any_changes else changes,
    )
