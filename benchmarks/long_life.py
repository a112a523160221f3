"""Does a controller that runs thousands of trials leak, and does the last trial take it as long as the first?

    python benchmarks/long_life.py                         2,000 instant trials, twice: see below
    python benchmarks/long_life.py -n 500 --sampler random

One study whose trials are a function call in the controller, with the default sampler: what the controller
itself takes for each.  Another whose trials are processes of their own, forked from a template, with random
choices.  Both have Optuna's storage, and spaces of 2,916 and 3,600 cells; five looks at each are printed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _common import REPOSITORY, Bars, parser

sys.path.insert(0, str(REPOSITORY / "tests"))
sys.path.insert(0, str(REPOSITORY / "tests" / "sweeper"))

from controllers import Controllers

from footprint import a_trial, isolated_study
from memsweep.machine import n_cores
from memsweep.units import bytes_text

MOST_MEMORY_BYTES, MOST_STUDY_BYTES, MOST_TEMPLATE_BYTES = 24 << 10, 8 << 10, 1 << 10
"""The bars, for each trial: memory of the controller, disk beside the trial folders, its template's."""

ARGUMENTS = ("x=range(0,6)", "y=range(0,6)", *(f"+{key}=range(0,3)" for key in "abcd"))


def main() -> int:
    """Run both studies, print what was seen of them, and return the exit code."""
    command = parser(__doc__)
    command.add_argument("-n", type=int, default=2_000, metavar="TRIALS", help="of each study; 2,000")
    command.add_argument("--sampler", default="auto", help="of the study in one process; auto")
    asked = command.parse_args()
    marks = [int(asked.n * share) for share in (0.05, 0.25, 0.5, 0.75)] + [asked.n - 1]
    bars = Bars()
    with tempfile.TemporaryDirectory() as folder, Controllers() as controllers:
        settings = {"n_trials": asked.n, "storage": "auto", "sampler": asked.sampler, "progress": "off"}
        done = controllers.run(
            Path(folder) / "study", ARGUMENTS, settings=settings, look_at=marks, limit_seconds=3_600
        )
        if done["code"]:
            sys.exit(f"the study ended with {done['code']}:\n{done['printed']}")
    judge(f"{asked.n:,} calls, sampler {asked.sampler}", done["looked"], bars)
    with tempfile.TemporaryDirectory() as folder:
        words = ["hydra.sweeper.sampler=random"]
        judge(f"{asked.n:,} processes", isolated_study(Path(folder), asked.n, marks, words)[0], bars)
    return bars.exit_code


def judge(name: str, looked: Sequence[dict[str, Any]], bars: Bars) -> None:
    """Print what was seen of a study, and hold it against the bars."""
    print(f"\n{name}")
    print(
        "  trials  controller  handles  threads  children   templates  beside trials  ms a trial    computed"
    )
    for before, one in zip([None, *looked], looked, strict=False):
        keys = () if before is None else ("at_seconds", "cpu_seconds")
        pace = "  ".join(f"{a_trial(before, one, key) * 1000:>10.1f}" for key in keys)
        print(
            f"  {one['number']:>6,}  {bytes_text(one['anonymous_bytes']):>10}  {one['n_handles']:>7}"
            f"  {one['n_threads']:>7}  {one['n_children']:>8}  {bytes_text(one['children_bytes']):>10}"
            f"  {bytes_text(one['study_bytes']):>13}  {pace}"
        )
    first, last = looked[1], looked[-1]  # the first trials fill what stays: caches, memory of the allocator
    limits = {
        "memory of the controller": ("anonymous_bytes", MOST_MEMORY_BYTES),
        "disk beside the trial folders": ("study_bytes", MOST_STUDY_BYTES),
        "memory of the template": ("children_bytes", MOST_TEMPLATE_BYTES),
    }
    for what, (key, most_bytes) in limits.items():
        n_bytes = a_trial(first, last, key)
        figure = f"{bytes_text(n_bytes)} a trial, at most {bytes_text(most_bytes)}"
        bars.check(f"{name}: {what}", held=n_bytes <= most_bytes, figure=figure)
    for what in ("n_handles", "n_threads", "n_children", "n_partial"):
        spare = n_cores() if what == "n_threads" else 0  # a library of linear algebra starts its own at need
        figure = f"{first[what]} and {last[what]}"
        held = last[what] <= first[what] + spare
        bars.check(f"{name}: {what.removeprefix('n_')} stay as many", held=held, figure=figure)


if __name__ == "__main__":
    sys.exit(main())
