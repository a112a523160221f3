"""Does a short trial tell the throughput of the same trial, ten times as long?

    python benchmarks/measurement_accuracy.py              seven set-ups
    python benchmarks/measurement_accuracy.py --only LoRA --passes 12 model=tiny measure.probe_examples=8

A trial trains and is timed for many passes.  Its windows are handed, one after another, to the rule that ends
a measurement, which gives what measure=standard would have reported; that short figure is held against the
throughput over all windows from the first that counts on.  Both come from one process and differ in length
alone: what differs from process to process is no fault of an instrument; `another_process.py` shows it.
Bars: 3 % for the median of the set-ups, 6 % for the worst.  Where the short one took more than a tenth,
because its passes differed, another trial runs, long enough for that.

Beside it, for information: what measure=quick would have reported, how often as long the whole was, and how
far the machine drifted, which is the last third of the windows against the first.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from _common import Bars, Bench, Progress, bench, composed, measures_of
from _set_ups import asked_for, command, median_and_worst

from memsweep.config.schema import MeasureConfig
from memsweep.measure.meter import Reading
from memsweep.measure.steady import SteadyState, Window
from memsweep.measure.tokens import TokenCount

MEDIAN_SHARE, WORST_SHARE, TIMES_LONGER = 0.03, 0.06, 10
NEVER_SETTLED = 1e-9


@dataclass(frozen=True, slots=True)
class Short:
    """What a shorter measurement of the same trial would have reported.

    Attributes:
        tokens_per_second: Its throughput.
        n_windows: Windows that it would have taken, warm-up too.
        n_warm_up: Those of them that are warm-up.
        is_settled: Whether it would have been known as well as asked.
    """

    tokens_per_second: float
    n_windows: int
    n_warm_up: int
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A long trial, and what shorter ones would have reported.

    Attributes:
        tokens_per_second: Over all windows that the short one does not call warm-up.
        n_windows: All of them.
        standard: What measure=standard would have reported.
        quick: What measure=quick would have reported.
        drift: Throughput of the last third of the windows over the first third, less 1.
    """

    tokens_per_second: float
    n_windows: int
    standard: Short
    quick: Short
    drift: float

    @property
    def difference(self) -> float:
        """The short figure over the long one, less 1."""
        return self.standard.tokens_per_second / self.tokens_per_second - 1

    @property
    def times_longer(self) -> float:
        """Windows that the long figure is of, for each that the short one is of; warm-up is in neither."""
        warm_up = self.standard.n_warm_up
        return (self.n_windows - warm_up) / (self.standard.n_windows - warm_up)

    @property
    def passes_wanted(self) -> int:
        """Passes of a trial that is long beside the short one, even if that takes two more."""
        return TIMES_LONGER * (self.standard.n_windows + 2)


def replayed(windows: Sequence[Window], measure: MeasureConfig) -> Short:
    """Return what a trial with these windows would have reported, had it been measured as `measure` says."""
    steady = SteadyState(measure.precision, measure.min_passes, measure.max_passes, measure.max_seconds)
    for window in windows:
        if steady.add(window):
            break
    return Short(rate(steady.measured), len(steady.windows), steady.n_warm_up, steady.is_settled)


def rate(windows: Sequence[Window]) -> float:
    """Return tokens per second over windows."""
    return sum(window.tokens for window in windows) / sum(window.seconds for window in windows)


def compare(windows: Sequence[Window], standard: MeasureConfig, quick: MeasureConfig) -> Compared:
    """Return a long trial beside the shorter ones that it begins with."""
    short = replayed(windows, standard)
    third = len(windows) // 3
    return Compared(
        tokens_per_second=rate(windows[short.n_warm_up :]),
        n_windows=len(windows),
        standard=short,
        quick=replayed(windows, quick),
        drift=rate(windows[-third:]) / rate(windows[:third]) - 1,
    )


def long_trial(here: Bench, name: str, overrides: Sequence[str], n_passes: int) -> Sequence[Window]:
    """Run a trial of so many timed passes, and return its windows."""
    longer = (
        *("measure=standard", f"measure.precision={NEVER_SETTLED}", "measure.max_seconds=3600"),
        *(f"measure.min_passes={n_passes}", f"measure.max_passes={n_passes}"),
    )
    record = here.trial(composed(*overrides, *longer))
    measures_of(record, name)
    return [
        Window(one["seconds"], Reading(TokenCount(tokens=one["tokens"], slots=one["tokens"])))
        for one in record.facts["windows"]
    ]


def judge(found: Mapping[str, Compared], bars: Bars) -> None:
    """Print whether the bars hold."""
    middle, largest, worst = median_and_worst({name: one.difference for name, one in found.items()})
    shortest = min(found.values(), key=lambda one: one.times_longer)
    bars.check(
        "median difference of a set-up",
        held=middle <= MEDIAN_SHARE,
        figure=f"{middle:.1%} of {len(found)} set-ups, at most {MEDIAN_SHARE:.0%}",
    )
    bars.check(
        "worst difference of a set-up",
        held=largest <= WORST_SHARE,
        figure=f"{largest:.1%} ({worst}), at most {WORST_SHARE:.0%}",
    )
    bars.check(
        "the long trials are long",
        held=shortest.times_longer >= TIMES_LONGER,
        figure=f"{shortest.times_longer:.1f} times at least, of {TIMES_LONGER}",
    )


def main() -> int:
    """Compare each set-up and print the table."""
    own = command(__doc__)
    own.add_argument("--passes", type=int, default=60, help="timed passes of a long trial at first")
    asked = own.parse_args()
    is_look = bool(asked.overrides)  # proves nothing, and is to be over soon
    bars, progress = Bars(), Progress()
    standard, quick = (composed(f"measure={name}").measure for name in ("standard", "quick"))
    found: dict[str, Compared] = {}
    print(
        f"{'set-up':22s} {'long':>9s} {'short':>9s} {'differs':>8s}  {'passes':>6s} {'longer':>6s}  "
        f"{'quick':>7s}  {'drift':>7s}"
    )
    with bench() as here:
        for name, overrides in asked_for(asked, progress):
            one = compare(long_trial(here, name, overrides, asked.passes), standard, quick)
            while one.times_longer < TIMES_LONGER and not is_look:
                print(
                    f"{name:22s} {one.standard.n_windows} passes: the long trial was too short for that one"
                )
                one = compare(long_trial(here, name, overrides, one.passes_wanted), standard, quick)
            found[name] = one
            unsettled = "" if one.standard.is_settled else "  unsettled"
            print(
                f"{name:22s} {one.tokens_per_second:9,.0f} {one.standard.tokens_per_second:9,.0f} "
                f"{one.difference:+8.1%}  {one.standard.n_windows:6d} {one.times_longer:6.1f}  "
                f"{one.quick.tokens_per_second / one.tokens_per_second - 1:+7.1%}  {one.drift:+7.1%}"
                f"{unsettled}",
                flush=True,
            )
    print("tokens per second; passes: of the short trial, warm-up too\n")
    judge(found, bars)
    print(f"{progress.seconds:.0f} s")
    return bars.exit_code


if __name__ == "__main__":
    sys.exit(main())
