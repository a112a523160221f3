"""How much memory, and how long, does it take to count the lengths of a million examples?

    python benchmarks/lengths_memory.py
    python benchmarks/lengths_memory.py --rows 100000

Writes a file of short made-up rows (1 to 60 words), counts their lengths as `memsweep lengths dataset=jsonl`
does, and makes the table, packing and padding with it.  The bar: from just before the first row is read,
resident memory grows by less than 1 GiB at its peak.  Rows per second are printed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

from _common import Bars, Progress, parser

from memsweep.units import GIB, bytes_text, seconds_text

WORDS = ("the", "list", "returns", "a", "number", "when", "called", "with", "one", "argument", "or", "raises")
LONGEST_WORDS = 60


def main() -> int:
    """Make the rows, count them, and print what it took."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, default=1_000_000, help="how many")
    asked, bars, progress = command.parse_args(), Bars(), Progress()
    from memsweep.lengths.counting import table
    from memsweep.lengths.scan import scan
    from memsweep.lengths.whose import asked as whose
    from memsweep.lengths.whose import composed

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        write_rows(path, asked.rows)
        progress.say(f"{asked.rows:,} rows written, {bytes_text(path.stat().st_size)}")
        who = whose(*composed(["model=small", "dataset=jsonl", f"dataset.path={path}"]))
        progress.say("libraries imported, tokenizer read")
        before = resident_bytes("VmRSS")
        forget_peak()
        began, cpu_began = time.monotonic(), time.process_time()
        scanned = scan(who)
        counted, cpu_counted = time.monotonic(), time.process_time()
        found = table(who, scanned)
        ended = time.monotonic()
        growth = resident_bytes("VmHWM") - before
    rate = asked.rows / (counted - began)
    print(f"{found.n_examples:,} examples, {found.tokens:,} tokens, the longest {found.parts[0].longest:,}")
    cpu = cpu_counted - cpu_began
    print(f"counted in {seconds_text(counted - began)}, {rate:,.0f} rows/s")
    print(f"{seconds_text(cpu)} of processor time")
    print(f"table made in {seconds_text(ended - counted)}")
    bars.check("resident memory grows by less than 1 GiB", held=growth < GIB, figure=bytes_text(growth))
    return bars.exit_code


def write_rows(path: Path, n_rows: int) -> None:
    """Write rows of 1 to `LONGEST_WORDS` words, the same at each run."""
    chance = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n_rows):
            first = chance.randrange(len(WORDS))
            words = (WORDS[first:] + WORDS * 5)[: chance.randint(1, LONGEST_WORDS)]
            file.write(json.dumps({"text": " ".join(words)}) + "\n")


def resident_bytes(name: str) -> int:
    """Return one of this process's figures in /proc/self/status."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


def forget_peak() -> None:
    """Let VmHWM begin anew.  Source: Linux, Documentation/filesystems/proc.rst, clear_refs."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
