"""`memsweep diff [A] [B]`: what a change of configuration means for training and for what a sweep tries."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsweep.errors import ConfigError

if TYPE_CHECKING:
    from memsweep.cli.subcommand import Subparsers
    from memsweep.diff.review import Review

DIFFERENT, BROKEN, INTERRUPTED = 1, 1, 130

_DESCRIPTION = """\
Compose every preset (conf/config.yaml alone, and each of conf/experiment) on two sides, and say what is
different: values with their types, switched options with what follows, what a trial is given (arguments of
TRL, of the model, the adapter, environment variables), what a sweep searches, and which combinations appear
or vanish, each with the reason.  What only looks otherwise (order, comments, 1e-4 for 0.0001) is none.

A and B are each one of
  main, HEAD~1, v1.0       a git ref
  .                        the working tree
  outputs/<study>/trials/7 a trial: also what was really in force in it
  conf/experiment/x.yaml   one preset of the working tree; against a ref or another preset
  some/config.yaml         any other config file, as it is
  baseline                 the other side with every technique at its baseline; of a trial, its study's

Each side is composed by its own code, which runs here, without the secrets of your environment: compare what
you would also check out and run, or say --no-code.

Exit codes: 1 when a preset that composes at A does not compose at B, whatever was asked; 1 with --exit-code
when anything differs; 2 for a bad request; 130 interrupted; else 0.  A preset that composes at neither is
only reported.
"""
_EXAMPLES = """\
examples:
  memsweep diff                                  HEAD against the working tree
  memsweep diff main HEAD --markdown             a comment for a review
  memsweep diff main --exit-code                 1 when something differs
  memsweep diff outputs/s/trials/7 baseline      what that trial did otherwise than the baseline
  memsweep diff main -- trainer=dpo model=tiny   every preset with these overrides
"""


def add_to(commands: Subparsers) -> None:
    """Add this subcommand to the parser's."""
    parser = commands.add_parser(
        "diff",
        help="tell what a change of configuration means for training and for a sweep",
        usage="memsweep diff [A] [B] [options] [-- OVERRIDE ...]",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", metavar="A", nargs="?", default="HEAD", help="default: HEAD")
    parser.add_argument("second", metavar="B", nargs="?", default=".", help="default: the working tree")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--markdown", action="store_true", help="one comment for a review, of at most 65,536 characters"
    )
    form.add_argument("--json", action="store_true", help="everything, for programs")
    parser.add_argument("--exit-code", action="store_true", help="end with 1 if anything differs")
    parser.add_argument(
        "--resolve", action="store_true", help="show what ${...} stands for, instead of ${...}"
    )
    parser.add_argument(
        "--experiment", metavar="NAME", action="append", default=[], help="only this preset; may hold *"
    )
    parser.add_argument(
        "--ignore", metavar="PATH", action="append", default=[], help="leave out these paths: 'tracking.*'"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="compose anew what is known from the last time"
    )
    parser.add_argument(
        "--no-code",
        action="store_true",
        help="run no code of either side: compose both with the code that is installed here",
    )
    parser.set_defaults(run=run, overrides=())
    _take_overrides(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    previous = signal.signal(signal.SIGTERM, _end)
    try:
        review = _review(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, previous)
    if arguments.json:
        print(json.dumps(review.to_mapping(), indent=2, ensure_ascii=False))
    elif arguments.markdown:
        from memsweep.diff.comment import markdown

        print(markdown(review, _command(arguments)), end="")
    else:
        from memsweep.diff.terminal import print_review

        print_review(review)
    if review.broken:
        return BROKEN
    return DIFFERENT if arguments.exit_code and review.is_different else 0


def _review(arguments: argparse.Namespace) -> Review:
    from memsweep.diff.compare import Wishes, review
    from memsweep.diff.repository import find_project
    from memsweep.diff.side import sides
    from memsweep.diff.terminal import progress_bar

    try:
        project = find_project(Path.cwd())
    except ConfigError:
        if "MEMSWEEP_CONF" in os.environ:
            raise
        project = None
    wishes = Wishes(
        overrides=tuple(arguments.overrides),
        experiments=tuple(arguments.experiment),
        ignore=tuple(arguments.ignore),
        resolve=arguments.resolve,
        use_cache=not arguments.no_cache,
        runs_code=not arguments.no_code,
    )
    with progress_bar() as show:
        return review(sides(arguments.first, arguments.second, project), project, wishes, show)


def _command(arguments: argparse.Namespace) -> str:
    from memsweep.secret import masked_override

    typed = [masked_override(text) for text in arguments.overrides]
    return shlex.join(
        ["memsweep", "diff", arguments.first, arguments.second, *(["--", *typed] if typed else [])]
    )


def _take_overrides(parser: argparse.ArgumentParser) -> None:
    """Let a parser keep what comes after `--` as overrides: argparse would take it for A and B."""
    parse = parser.parse_known_args

    def split(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        at = words.index("--") if "--" in words else len(words)
        found, extra = parse(words[:at], namespace)
        found.overrides = words[at + 1 :]
        return found, extra

    parser.parse_known_args = split  # type: ignore[method-assign, assignment]


def _end(*_: object) -> None:
    """End as after Ctrl-C, so that nothing is left behind."""
    raise KeyboardInterrupt
