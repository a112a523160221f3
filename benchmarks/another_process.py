"""How far is a short trial from a long plain training in another process?

    python benchmarks/another_process.py               seven set-ups
    python benchmarks/another_process.py --only LoRA --shorts 1 model=tiny measure.probe_examples=8

The long training is plain TRL over ten times as many examples of the same data, in another order whose
tenths are alike: a plain clock, tokens from the lengths of its rows, nothing of ours in it.  Machines drift
by several per cent over minutes, so the long training stops at several points, waiting on a pipe at the end
of a step, while a trial with measure=standard runs, each with another seed, that is another order of the
probe.  Each trial is held against the long training's steps before and after it; the median of these counts
for a set-up.  So the error of an instrument and what two processes differ by come together.  There is no bar:
processes of one training differ among themselves (`allocator_spread.py`); what is asked of a short trial
within its own process, `measurement_accuracy.py` asks.

Beside it: a trial with measure=quick; and how much of the difference is no error of time but
of composition: slots for each token in the trial's batches against those of the long training's.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from _common import HELD, Bench, Progress, bench, composed, measures_of
from _pauses import Pauses
from _plain import Timed, plain_training
from _set_ups import asked_for, command, median_and_worst

from memsweep.config.schema import TrialConfig

TIMES_LONGER, N_FIRST_STEPS, LONG_SEED = 10, 8, 1_000


@dataclass(frozen=True, slots=True)
class Compared:
    """The short trials of a set-up beside its long training.

    Attributes:
        long: The long training's tokens per second.
        around: The same of its steps around each pause, in which a trial ran.
        shorts: Each standard trial's.
        quick: The quick trial's.
        composition: Slots for each token in the trials, the median, over those of the long training, less 1.
    """

    long: float
    around: Sequence[float]
    shorts: Sequence[float]
    quick: float
    composition: float

    @property
    def each(self) -> list[float]:
        """Each trial over the long training around it, less 1."""
        return [short / near - 1 for short, near in zip(self.shorts, self.around, strict=True)]

    @property
    def difference(self) -> float:
        """The median of these."""
        return statistics.median(self.each)


def main() -> int:
    """Compare each set-up and print the table."""
    own = command(__doc__)
    own.add_argument("--shorts", type=int, default=3, help="standard trials of each set-up")
    asked = own.parse_args()
    progress = Progress()
    found: dict[str, Compared] = {}
    print(
        f"{'set-up':22s} {'long run':>9s} {'median':>9s} {'differs':>8s}  {'quick':>8s}  "
        f"{'composition':>11s}  each trial"
    )
    with bench() as here:
        for name, overrides in asked_for(asked, progress):
            found[name] = one = compared(here, name, overrides, asked.shorts)
            each = " ".join(f"{away:+.1%}" for away in one.each)
            middle = statistics.median(one.shorts)
            print(
                f"{name:22s} {one.long:9,.0f} {middle:9,.0f} {one.difference:+8.1%}  "
                f"{one.quick / one.around[0] - 1:+8.1%}  {one.composition:+11.1%}  {each}",
                flush=True,
            )
    middle, largest, worst = median_and_worst({name: one.difference for name, one in found.items()})
    print("tokens per second; differences are from the long run around each trial;", end=" ")
    print("composition: slots for each token\n")
    print(f"median {middle:.1%} of {len(found)} set-ups, worst {largest:.1%} ({worst})")
    print(f"{progress.seconds:.0f} s")
    return HELD


def compared(here: Bench, name: str, overrides: Sequence[str], n_shorts: int) -> Compared:
    """Run a long training, and trials where it pauses."""

    def config(measure: str, seed: int) -> TrialConfig:
        return composed(f"measure={measure}", f"seed={seed}", *overrides)

    shorts: list[Mapping[str, float]] = []
    quick: Mapping[str, float] = {}
    standard = config("standard", 0)
    with paused(here, standard, n_shorts) as (stops, training):
        for seed, _ in enumerate(stops):
            shorts.append(measures_of(here.trial(config("standard", seed)), name))
            if not quick:
                quick = measures_of(here.trial(config("quick", seed)), name)
    long = training.result()
    slots = statistics.median(one["slots_per_second"] / one["tokens_per_second"] for one in shorts)
    return Compared(
        long=long.tokens / long.seconds,
        around=long.around,
        shorts=[one["tokens_per_second"] for one in shorts],
        quick=quick["tokens_per_second"],
        composition=slots / (long.slots / long.tokens) - 1,
    )


@contextlib.contextmanager
def paused(here: Bench, config: TrialConfig, n_pauses: int) -> Iterator[tuple[Iterator[None], Future[Timed]]]:
    """Begin a long training in a child; yield its stops, one after the other, and what it will return."""
    pauses = Pauses(here.folder / "pauses" / str(time.monotonic_ns()), n_pauses)
    pauses.make()
    train = partial(
        plain_training,
        n_examples=TIMES_LONGER * config.measure.probe_examples,
        seed=LONG_SEED,
        n_first=N_FIRST_STEPS,
        n_parts=TIMES_LONGER,
        pauses=pauses,
    )
    with ThreadPoolExecutor(max_workers=1) as threads:
        training = threads.submit(here.child, config, train)
        try:
            yield pauses.stops(training), training
        finally:
            pauses.end()


if __name__ == "__main__":
    sys.exit(main())
