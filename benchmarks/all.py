"""Runs all proofs, one after the other, and goes on after one that fails.

    python benchmarks/all.py                       what `make bench` runs: an hour or more
    python benchmarks/all.py token_truth           one of them, or several; or another_process, long_life

Exit code 1 when a bar of any did not hold.  Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from _common import FAILED, HELD, parser

from memsweep.units import seconds_text

PROOFS = (
    "token_truth",
    "memory_truth",
    "allocator_spread",
    "instrument_overhead",
    "ranking_truth",
    "measurement_accuracy",
    "trial_overhead",
    "diff_time",
    "lengths_memory",
    "report_time",
)
SCRIPTS = (*PROOFS, "another_process", "long_life")
FOLDER = Path(__file__).resolve().parent


def main() -> int:
    """Run the scripts that are asked for, all when none is."""
    command = parser(__doc__)
    command.add_argument("scripts", nargs="*", metavar="SCRIPT", help=", ".join(SCRIPTS))
    asked = command.parse_args().scripts or PROOFS
    unknown = [name for name in asked if name not in SCRIPTS]
    if unknown:
        command.error(f"there is no {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    return run(asked)


def run(names: Sequence[str], folder: Path = FOLDER) -> int:
    """Run scripts in turn, print how each ended, and return the exit code of all together."""
    ended: dict[str, tuple[int, float]] = {}
    for number, name in enumerate(names, start=1):
        print(f"\n=== {number} of {len(names)}: {name}", flush=True)
        began = time.monotonic()
        code = subprocess.run([sys.executable, str(folder / f"{name}.py")], check=False).returncode
        ended[name] = code, time.monotonic() - began
    print("\n=== all")
    for name, (code, seconds) in ended.items():
        print(f"{'HOLDS' if code == HELD else 'FAILS'}  {name:24s} {seconds_text(seconds)}")
    print(f"total {seconds_text(sum(seconds for _, seconds in ended.values()))}")
    return FAILED if any(code != HELD for code, _ in ended.values()) else HELD


if __name__ == "__main__":
    sys.exit(main())
