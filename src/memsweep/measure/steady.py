"""When is a throughput known well enough to stop measuring?

Time is taken in windows, each one pass over the same batches: single steps differ several-fold with the
lengths of their examples, whole passes do not.  Warm-up ends when two windows in a row agree; the earlier of
the two is the first that counts.  Measuring ends when the 95 % confidence interval of the windows' mean rate
is narrow enough, or when there have been enough windows or seconds; then the result is unsettled, with the
interval that it has.

Windows one after the other on one machine share what disturbs it, so the interval tells how well this run is
known, not how another run will turn out: that is what repeats are for.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memsweep.measure.meter import Reading
from memsweep.student import t_quantile_95


@dataclass(frozen=True, slots=True)
class Window:
    """One pass over the probe's batches.

    Attributes:
        seconds: Wall time, from the end of a step to the end of a step.
        done: What was done in it.
    """

    seconds: float
    done: Reading

    @property
    def tokens(self) -> int:
        """Trained tokens."""
        return self.done.counted.tokens

    @property
    def tokens_per_second(self) -> float:
        """Trained tokens per second of this window alone."""
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate over several windows.

    Attributes:
        value: All that was counted over all seconds.
        low: Lower end of the 95 % confidence interval of the windows' mean; never below 0.
        high: Its upper end.
    """

    value: float
    low: float
    high: float

    @property
    def precision(self) -> float:
        """How far the interval reaches above the value, as a share of it; below, it may end at 0."""
        return (self.high - self.value) / self.value if self.value else float("inf")


def estimate(windows: Sequence[Window], amount: Callable[[Window], float]) -> Estimate | None:
    """Return the rate of `amount` per second over `windows`, None when fewer than two tell nothing of spread.

    The interval is Student's t of the windows' rates.  Source: NIST/SEMATECH e-Handbook of Statistical
    Methods, 1.3.5.2.
    """
    if len(windows) < 2:
        return None
    value = sum(map(amount, windows)) / sum(window.seconds for window in windows)
    rates = [amount(window) / window.seconds for window in windows]
    half = t_quantile_95(len(rates) - 1) * statistics.stdev(rates) / len(rates) ** 0.5
    return Estimate(value, max(0.0, value - half), value + half)


class SteadyState:
    """Takes windows one by one, and tells when there are enough.

    Attributes:
        windows: All of them, in order.

    Args:
        precision: Half the interval's width, as a share of the rate, at which measuring ends.
        min_windows: Windows that count, at least.
        max_windows: Windows, at most, those too that turn out to be warm-up.
        max_seconds: No window follows after so many seconds of windows.
    """

    def __init__(self, precision: float, min_windows: int, max_windows: int, max_seconds: float) -> None:
        self.windows: list[Window] = []
        self._precision, self._max_seconds = precision, max_seconds
        self._min, self._max = min_windows, max_windows
        self._first: int | None = None

    def add(self, window: Window) -> bool:
        """Take a window; return whether there are enough."""
        self.windows.append(window)
        if self._first is None and len(self.windows) > 1 and self._agree(*self.windows[-2:]):
            self._first = len(self.windows) - 2
        seconds = sum(window.seconds for window in self.windows)
        # One window alone has no interval, so there are always two.
        spent = len(self.windows) >= self._max or (len(self.windows) > 1 and seconds >= self._max_seconds)
        return spent or self.is_settled

    @property
    def is_warm(self) -> bool:
        """Whether warm-up has ended: two windows in a row have agreed."""
        return self._first is not None

    @property
    def n_left(self) -> int:
        """How many windows may follow at most, seconds aside."""
        return max(0, self._max - len(self.windows))

    @property
    def is_settled(self) -> bool:
        """Whether the rate is known as well as was asked."""
        if self._first is None or len(self.measured) < self._min:
            return False
        found = self._estimate()
        return found is not None and found.precision <= self._precision

    @property
    def measured(self) -> Sequence[Window]:
        """The windows that count: without warm-up; where no two ever agreed, the last `min_windows`."""
        return self.windows[-self._min :] if self._first is None else self.windows[self._first :]

    @property
    def n_warm_up(self) -> int:
        """How many windows were warm-up."""
        return len(self.windows) - len(self.measured)

    @property
    def remark(self) -> str | None:
        """Say what is wanting, and what is strange; None when the rate is settled and nothing is.

        How well the rate is known is not in it: that stands beside the figure, and repeats make it another.
        """
        said = [] if self.is_settled else [self._unsettled()]
        said += [self._faster_before()]
        return "; ".join(text for text in said if text) or None

    def _unsettled(self) -> str:
        agreed = "" if self._first is not None else ", and no two in a row agreed"
        return (
            f"unsettled: {len(self.windows)} passes did not bring it within "
            f"measure.precision={self._precision:g}{agreed}"
        )

    def _faster_before(self) -> str:
        """Return that warm-up was faster than what counts, which is no warming up; else nothing."""
        found, before = self._estimate(), self.windows[: self.n_warm_up]
        if found is None or not before:
            return ""
        rates = [window.tokens_per_second for window in before]
        fastest = max(rates)
        if fastest <= (1 + 2 * self._precision) * found.value:
            return ""
        which = "the first pass" if fastest == rates[0] else f"pass {rates.index(fastest) + 1}"
        return (
            f"{which}, left out as warm-up, was {fastest / found.value - 1:.0%} faster than those that "
            "count: something slowed them"
        )

    def _estimate(self) -> Estimate | None:
        return estimate(self.measured, lambda window: window.tokens)

    def _agree(self, one: Window, other: Window) -> bool:
        """Tell whether each is within the precision of their mean."""
        rates = one.tokens_per_second, other.tokens_per_second
        return abs(rates[0] - rates[1]) <= self._precision * sum(rates)
