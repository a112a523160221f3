"""`memsweep clean STUDY`: trial folders without what a study can do without."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import add_study, read, study_folder, whole_number
from memsweep.errors import ConfigError
from memsweep.units import bytes_text

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers
    from memsweep.record.folder import StudyFolder

FRONT, MEASURED, NONE = "front", "measured", "none"


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "clean",
        help="free the disk of what trials left and a study can do without",
        description="Removes logs, checkpoints and whatever else a trial's process wrote.  Every trial keeps "
        "trial.json, outcome.json, config.yaml, overrides.txt and effective.json, so the study can still be "
        "reported on, rebuilt and continued.",
    )
    add_study(parser)
    parser.add_argument(
        "--keep",
        metavar="WHICH",
        default=FRONT,
        help="trials that stay whole: front (and the baseline; the default), measured, none, or numbers: 3,7",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be freed")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Thin the folders, and say what that frees."""
    from memsweep.study.thin import thin

    folder = study_folder(arguments.study)
    try:
        found = thin(folder, partial(_kept, arguments.keep, folder), is_dry=arguments.dry_run)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder.path} cannot be removed: {error.strerror}") from error
    for one in found:
        names = ", ".join(sorted({path.name for path in one.paths}))
        print(f"trial {one.number}: {bytes_text(one.n_bytes)}  ({names})")
    total = bytes_text(sum(one.n_bytes for one in found))
    verb = "would be freed" if arguments.dry_run else "freed"
    print(f"{total} {verb} in {len(found)} trial folder(s) of {folder.path}")


def _kept(asked: str, folder: StudyFolder) -> frozenset[int]:
    """Return the numbers of the trials that stay whole.

    Raises:
        ConfigError: If that is none of what can be asked for, or the study has no such trial.
    """
    from memsweep.study.thin import front_of

    _, results = read(folder)
    numbers = {result.number for result in results}
    if asked == FRONT:
        return front_of(folder)
    if asked == MEASURED:
        return frozenset(result.number for result in results if result.objectives)
    if asked == NONE:
        return frozenset()
    words = [word.strip() for word in asked.split(",")]
    found = {word: whole_number(word) for word in words}
    unknown = [word for word in words if found[word] not in numbers]
    if unknown:
        raise ConfigError(
            f"--keep must be {FRONT}, {MEASURED}, {NONE} or numbers of trials such as 3,7; there is no trial "
            f"{', '.join(unknown)} in {folder.path}, which has {len(numbers)}"
        )
    return frozenset(number for number in found.values() if number is not None)
