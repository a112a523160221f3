"""How much does one training differ from process to process, with glibc's allocator and with a loose one?

    python benchmarks/allocator_spread.py
    python benchmarks/allocator_spread.py --processes 2

Plain training of one set-up, no instrument, each time in a child of its own; the two kinds alternate.  A
pass's time is the median of a process's passes.  Bar: with the loose allocator, in which a trial's speed is
taken, the slowest process is within 6 % of the fastest.  That of glibc's own is printed, and how much faster
loose is.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from functools import partial
from pathlib import Path

from _common import Bars, bench, composed, parser
from _passes import at_step_ends, trainer_for_passes

from memsweep.config.schema import TrialConfig

SET_UP = (
    *("model=small", "model.geometry.num_hidden_layers=2", "model.geometry.hidden_size=128"),
    *(
        "model.geometry.intermediate_size=344",
        "trainer.batch=4",
        "tracking=none",
        "measure.probe_examples=64",
    ),
    *("technique/truncation=max_length", "technique.truncation.max_length=256"),
    "technique/checkpointing=disabled",
)
N_PASSES, N_WARM_UP = 7, 2
SPREAD_SHARE = 0.06


def main() -> int:
    """Run the processes and print each."""
    command = parser(__doc__)
    command.add_argument("--processes", type=int, default=5, help="of each kind")
    asked, bars = command.parse_args(), Bars()
    config = composed(*SET_UP)
    found: dict[str, list[float]] = {"glibc's own": [], "loose": []}
    with bench() as here:
        for _ in range(asked.processes):
            for kind, seconds in found.items():
                seconds.append(here.child(config, partial(median_pass, is_loose=kind == "loose")))
                print(f"{kind:12s} {seconds[-1]:.3f} s a pass", flush=True)
    spreads = {kind: max(seconds) / min(seconds) - 1 for kind, seconds in found.items()}
    own, loose = (statistics.median(seconds) for seconds in found.values())
    (spread_own, spread_loose) = spreads.values()
    print(f"\nglibc's own: {spread_own:.0%} between processes; loose is {own / loose:.2f} times as fast")
    figure = f"{spread_loose:.1%} between processes, at most {SPREAD_SHARE:.0%}"
    bars.check("loose: processes agree", held=spread_loose <= SPREAD_SHARE, figure=figure)
    return bars.exit_code


def median_pass(config: TrialConfig, folder: Path, *, is_loose: bool) -> float:
    """Return the median seconds of a pass of plain training in this process, made for it alone."""
    import time

    from memsweep.measure.allocator import loosen

    if is_loose:
        loosen()
    trainer, steps = trainer_for_passes(config, folder, N_PASSES)
    ends: list[float] = []

    def step_ended(step: int, control: object) -> None:
        del control
        if step % steps == 0:
            ends.append(time.perf_counter())

    at_step_ends(trainer, step_ended)
    trainer.train()
    timed = ends[N_WARM_UP - 1 :]
    return statistics.median(after - before for before, after in itertools.pairwise(timed))


if __name__ == "__main__":
    sys.exit(main())
