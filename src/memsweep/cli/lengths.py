"""`memsweep lengths OVERRIDES`: how long the examples are in tokens, and which max_length costs what."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from memsweep.cli.subcommand import read, study_folder, whole_number
from memsweep.errors import ConfigError

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "lengths",
        help="how long the data's examples are in tokens, and which max_length loses what",
        description="Counts the tokens of all examples of the data as the trainer prepares them, and prints "
        "their distribution, what limits would lose, how much of a batch is padding and how full packed rows "
        "are.",
        epilog="example: memsweep lengths trainer=dpo dataset=jsonl dataset.path=pairs.jsonl",
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="OVERRIDE",
        help="as for train.py: dataset=..., trainer=..., model=...",
    )
    parser.add_argument("--study", help="of a study's data; its lengths.json is made, which its report shows")
    parser.add_argument(
        "--batch-size", type=_batches, metavar="N,N", help="batches whose padding is wanted; 2,4,8,16"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it too: FILE.svg or FILE.png")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Count, and print or draw."""
    from memsweep.lengths.drawing import require_form, write_picture
    from memsweep.lengths.printed import text
    from memsweep.lengths.progress import shown
    from memsweep.record.folder import write_json

    if arguments.picture is not None:
        require_form(arguments.picture)
    folder = None if arguments.study is None else study_folder(arguments.study)
    overrides = list(arguments.overrides)
    if folder is not None:
        if overrides:
            raise ConfigError(f"--study says whose data: leave {' '.join(overrides)} out, or --study")
        overrides = [text for text in read(folder)[0].fixed if not text.startswith("hydra.")]
    with shown() as on_rows:
        from memsweep.lengths.counting import BATCHES, lengths_of
        from memsweep.lengths.whose import composed

        config, techniques = composed(overrides)
        found = lengths_of(config, techniques, arguments.batch_size or BATCHES, on_rows)
    if folder is not None:
        write_json(folder.lengths, found.to_mapping())
    if arguments.picture is not None:
        write_picture(found, arguments.picture)
    print(json.dumps(found.to_mapping(), indent=2) if arguments.json else text(found))
    if folder is not None and not arguments.json:
        print(f"\n{folder.lengths}")


def _batches(typed: str) -> tuple[int, ...]:
    numbers = dict.fromkeys(whole_number(word.strip()) for word in typed.split(","))
    found = tuple(number for number in numbers if number)
    if len(found) < len(numbers):
        raise argparse.ArgumentTypeError(f"must be numbers above 0, such as 2,4,8, got {typed!r}")
    return found
