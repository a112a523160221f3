"""Does a short trial tell the throughput of the same trial, ten times as long?

    python benchmarks/measurement_accuracy.py              seven set-ups
    python benchmarks/measurement_accuracy.py --only LoRA --passes 12 model=tiny measure.probe_examples=8

A trial trains and is timed for many passes.  Its windows are handed, one after another, to the rule that ends
a measurement, which gives what measure=standard would have reported; that short figure is held against the
throughput over all windows from the first that counts on.  Both come from one process and differ in length
alone: what differs from process to process is no fault of an instrument; `another_process.py` shows it.
Bars: 3 % for the median of the set-ups, 6 % for the worst.  Where the short one took more than a tenth,
because its passes differed, another trial runs with ten times the passes that measure=standard allows.

A machine whose own speed wanders for longer than a short trial lasts makes any short measurement differ,
whatever the instrument.  How far shows in the long trial: it is cut into stretches as long as the short one,
and `noise` is how far 95 % of such stretches lie from the whole (a prediction interval, Student's t).  A
difference beyond its bar but within that noise proves nothing, and is said to be so.

Beside it, for information: what the short trial itself said of its precision; what measure=quick would have
reported; how often as long the whole was; how far the machine drifted, which is the last third of the windows
against the first.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from _common import Bars, Bench, Progress, bench, composed, measures_of
from _set_ups import asked_for, command, median_and_worst

from memsweep.config.schema import MeasureConfig
from memsweep.measure.meter import Reading
from memsweep.measure.steady import SteadyState, Window, estimate
from memsweep.measure.tokens import TokenCount
from memsweep.student import t_quantile_95

MEDIAN_SHARE, WORST_SHARE, TIMES_LONGER = 0.03, 0.06, 10
NEVER_SETTLED = 1e-9

FIRST_PASSES = 100
"""Timed passes of a long trial; a longer one runs where the short one took more than a tenth of them."""


@dataclass(frozen=True, slots=True)
class Short:
    """What a shorter measurement of the same trial would have reported.

    Attributes:
        tokens_per_second: Its throughput.
        n_windows: Windows that it would have taken, warm-up too.
        n_warm_up: Those of them that are warm-up.
        is_settled: Whether it would have been known as well as asked.
        precision: How well it would have said that it is known: half of its 95 % interval, as a share.
    """

    tokens_per_second: float
    n_windows: int
    n_warm_up: int
    is_settled: bool
    precision: float

    @property
    def n_measured(self) -> int:
        """Windows that count."""
        return self.n_windows - self.n_warm_up


@dataclass(frozen=True, slots=True)
class Compared:
    """A long trial, and what shorter ones would have reported.

    Attributes:
        tokens_per_second: Over all windows that the short one does not call warm-up.
        n_windows: All of them.
        standard: What measure=standard would have reported.
        quick: What measure=quick would have reported.
        drift: Throughput of the last third of the windows over the first third, less 1.
        noise: How far 95 % of the long trial's stretches as long as the short one lie from the whole, as a
            share of it.
    """

    tokens_per_second: float
    n_windows: int
    standard: Short
    quick: Short
    drift: float
    noise: float

    @property
    def difference(self) -> float:
        """The short figure over the long one, less 1."""
        return self.standard.tokens_per_second / self.tokens_per_second - 1

    @property
    def times_longer(self) -> float:
        """Windows that the long figure is of, for each that the short one is of; warm-up is in neither."""
        return (self.n_windows - self.standard.n_warm_up) / self.standard.n_measured

    @property
    def is_within_noise(self) -> bool:
        """Whether the short trial differs no more than a stretch of the long one does."""
        return abs(self.difference) <= self.noise


def replayed(windows: Sequence[Window], measure: MeasureConfig) -> Short:
    """Return what a trial with these windows would have reported, had it been measured as `measure` says."""
    steady = SteadyState(measure.precision, measure.min_passes, measure.max_passes, measure.max_seconds)
    for window in windows:
        if steady.add(window):
            break
    found = estimate(steady.measured, lambda window: window.tokens)
    precision = found.precision if found else math.inf
    return Short(rate(steady.measured), len(steady.windows), steady.n_warm_up, steady.is_settled, precision)


def rate(windows: Sequence[Window]) -> float:
    """Return tokens per second over windows."""
    return sum(window.tokens for window in windows) / sum(window.seconds for window in windows)


def compare(windows: Sequence[Window], standard: MeasureConfig, quick: MeasureConfig) -> Compared:
    """Return a long trial beside the shorter ones that it begins with."""
    short = replayed(windows, standard)
    counted, third = windows[short.n_warm_up :], len(windows) // 3
    return Compared(
        tokens_per_second=rate(counted),
        n_windows=len(windows),
        standard=short,
        quick=replayed(windows, quick),
        drift=rate(windows[-third:]) / rate(windows[:third]) - 1,
        noise=stretch_noise(counted, short.n_measured),
    )


def stretch_noise(windows: Sequence[Window], n_each: int) -> float:
    """Return how far from the whole 95 % of stretches of `n_each` windows lie, as a share of it.

    The half width of Student's prediction interval for one more stretch.  Source: NIST/SEMATECH e-Handbook of
    Statistical Methods, 7.2.6 and 1.3.5.2.  Infinite where there are fewer than two stretches.
    """
    stretches = [rate(windows[at : at + n_each]) for at in range(0, len(windows) - n_each + 1, n_each)]
    if len(stretches) < 2:
        return math.inf
    spread = statistics.stdev(stretches) * math.sqrt(1 + 1 / len(stretches))
    return t_quantile_95(len(stretches) - 1) * spread / rate(windows)


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
    beyond = [name for name, one in found.items() if abs(one.difference) > WORST_SHARE]
    noise = statistics.median(one.noise for one in found.values())
    bars.check(
        "median difference of a set-up",
        held=middle <= MEDIAN_SHARE,
        figure=f"{middle:.1%} of {len(found)} set-ups, at most {MEDIAN_SHARE:.0%}",
        noise=f"stretches as long differ by up to {noise:.1%}, the median" if middle <= noise else "",
    )
    reach = ", ".join(f"{found[name].noise:.1%} ({name})" for name in beyond)
    is_noise = all(found[name].is_within_noise for name in beyond)
    bars.check(
        "worst difference of a set-up",
        held=not beyond,
        figure=f"{largest:.1%} ({worst}), at most {WORST_SHARE:.0%}",
        noise=f"stretches as long differ by up to {reach}" if is_noise else "",
    )
    bars.check(
        "the long trials are long",
        held=shortest.times_longer >= TIMES_LONGER,
        figure=f"{shortest.times_longer:.1f} times at least, of {TIMES_LONGER}",
    )
    n_within = sum(abs(one.difference) <= one.standard.precision for one in found.values())
    print(
        f"{n_within} of {len(found)} long figures lie within what the short trial said of its own precision"
    )


def main() -> int:
    """Compare each set-up and print the table."""
    own = command(__doc__)
    own.add_argument("--passes", type=int, default=FIRST_PASSES, help="timed passes of a long trial at first")
    asked = own.parse_args()
    bars, progress = Bars(), Progress()
    standard, quick = (composed(f"measure={name}").measure for name in ("standard", "quick"))
    is_look = bool(asked.overrides)  # proves nothing, and is to be over soon
    found: dict[str, Compared] = {}
    print(
        f"{'set-up':22s} {'long':>9s} {'short':>9s} {'differs':>8s} {'+-':>6s} {'noise':>6s}  "
        f"{'passes':>6s} {'longer':>6s}  {'quick':>7s}  {'drift':>7s}"
    )
    with bench() as here:
        for name, overrides in asked_for(asked, progress):
            one = compare(long_trial(here, name, overrides, asked.passes), standard, quick)
            if one.times_longer < TIMES_LONGER and not is_look:
                print(
                    f"{name:22s} {one.standard.n_windows} passes: the long trial was too short for that one"
                )
                longest = TIMES_LONGER * standard.max_passes
                one = compare(long_trial(here, name, overrides, longest), standard, quick)
            found[name] = one
            unsettled = "" if one.standard.is_settled else "  unsettled"
            print(
                f"{name:22s} {one.tokens_per_second:9,.0f} {one.standard.tokens_per_second:9,.0f} "
                f"{one.difference:+8.1%} {one.standard.precision:6.1%} {one.noise:6.1%}  "
                f"{one.standard.n_windows:6d} {one.times_longer:6.1f}  "
                f"{one.quick.tokens_per_second / one.tokens_per_second - 1:+7.1%}  {one.drift:+7.1%}"
                f"{unsettled}",
                flush=True,
            )
    print("tokens per second; +-: what the short trial says; passes: of the short trial, warm-up too\n")
    judge(found, bars)
    print(f"{progress.seconds:.0f} s")
    return bars.exit_code


if __name__ == "__main__":
    sys.exit(main())
