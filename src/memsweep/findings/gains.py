"""What one set-up brings against another: the ratio of their figures, and how well it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, hypot, log

from memsweep.findings.find import Findings
from memsweep.findings.intervals import Interval
from memsweep.findings.words import name_text
from memsweep.record.trial import TrialResult

HARDLY_KNOWN = 100.0
"""An interval whose ends are further apart than this, as a ratio, says nothing that is worth printing."""


NEXT_TO_NOTHING = 1e-3
"""Share of a value that stands for the lower end of its interval where that is not above zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """One objective of a set-up as a multiple of another's.

    Attributes:
        ratio: The multiple.
        interval: The least and the most that it may be with 95 % confidence; None where the spread of one
            of the two is not known.
    """

    ratio: float
    interval: Interval | None

    @property
    def is_sure(self) -> bool:
        """Whether it is known that there is a difference at all."""
        return self.interval is not None and not self.interval[0] <= 1 <= self.interval[1]

    @property
    def is_hardly_known(self) -> bool:
        """Whether its interval is so wide that its ends say nothing."""
        return self.interval is not None and self.interval[1] > HARDLY_KNOWN * self.interval[0]

    @property
    def is_doubtful(self) -> bool:
        """Whether it is hardly known, or there may be no difference at all."""
        is_known = self.interval is not None and self.interval[0] < self.interval[1]
        return is_known and (self.is_hardly_known or not self.is_sure)


Gains = Mapping[str, Gain]
"""Objective to gain; an objective that has no ratio is missing."""


def gains(findings: Findings, result: TrialResult, reference: TrialResult) -> dict[str, Gain]:
    """Return what `result` brings against `reference`, in each objective that both have above zero.

    Args:
        findings: Knows the intervals.
        result: What is asked about.
        reference: What it is compared with.
    """
    found = {}
    for name in findings.objectives:
        if name in result.objectives and name in reference.objectives:
            own = gain(findings, result, reference, name)
            if own is not None:
                found[name] = own
    return found


def gain(findings: Findings, result: TrialResult, reference: TrialResult, name: str) -> Gain | None:
    """Return what `result` brings in an objective or another measure; None unless both have it above zero."""
    over, under = (
        one.objectives[name] if name in one.objectives else one.medians.get(name)
        for one in (result, reference)
    )
    if over is None or under is None or over <= 0 or under <= 0:
        return None
    if source(result) == source(reference):  # one measurement: it differs from itself by nothing
        return Gain(ratio=1.0, interval=(1.0, 1.0))
    bounds = ratio_interval(over, findings.interval(result, name), under, findings.interval(reference, name))
    return Gain(ratio=over / under, interval=bounds)


def baseline_gains(findings: Findings, result: TrialResult) -> dict[str, Gain]:
    """Return what a trial brings against the baseline; empty without a measured one."""
    return {} if findings.baseline is None else gains(findings, result, findings.baseline)


def comparison(findings: Findings, result: TrialResult) -> str:
    """Return a trial's objectives as multiples of the baseline's in words; empty without one."""
    if findings.is_baseline(result):
        return "the baseline itself"
    found = baseline_gains(findings, result)
    return (
        f"against the baseline: {', '.join(times_text(found[name], name) for name in found)}" if found else ""
    )


def source(result: TrialResult) -> int:
    """Return the number of the trial that measured a trial's figures."""
    return result.number if result.reused_from is None else result.reused_from


def ratio_interval(
    over: float, over_bounds: Interval | None, under: float, under_bounds: Interval | None
) -> Interval | None:
    """Return the 95 % interval of `over / under`; None where one of the two is not known.

    The arms of both are added as squares, on logarithms: `log r -+ sqrt(a^2 + b^2)`, where below `a` is the
    lower arm of the dividend and `b` the upper of the divisor, and above the other way round.  An end that
    reaches zero counts as next to nothing, so that the ratio is hardly known.
    Source: Zou and Donner 2008, "Construction of confidence limits about effect measures: a general
    approach", Statistics in Medicine 27, the limits of a difference.
    """
    if over_bounds is None or under_bounds is None:
        return None
    least_over = max(over_bounds[0], NEXT_TO_NOTHING * over)
    least_under = max(under_bounds[0], NEXT_TO_NOTHING * under)
    ratio = log(over / under)
    # Both intervals hold their value, unless a file says otherwise that nobody measured so.
    below = hypot(log(over / least_over), log(max(under_bounds[1] / under, 1.0)))
    above = hypot(log(max(over_bounds[1] / over, 1.0)), log(under / least_under))
    return exp(ratio - below), exp(ratio + above)


def gain_text(gain: Gain) -> str:
    """Return a gain in few characters: `1.27 x (1.20 to 1.34)`; without an interval where none is known."""
    known = _known_text(gain)
    return f"{factor_text(gain.ratio)} x" + (f" ({known})" if known else "")


def times_text(gain: Gain, name: str = "") -> str:
    """Return a gain as words: `1.27 times its throughput (1.20 to 1.34)`; `1.27 times (...)` for no name."""
    known = _known_text(gain)
    if gain.is_doubtful and not gain.is_hardly_known:
        known += ", so perhaps no difference"
    of = f" its {name_text(name)}" if name else ""
    return f"{factor_text(gain.ratio)} times{of}" + (f" ({known})" if known else "")


def brief_text(gain: Gain) -> str:
    """Return a gain for a column of them: `1.27 x`, with a question mark where it is doubtful."""
    return f"{gain.ratio:.2f} x{'?' if gain.is_doubtful else ''}"


def _known_text(gain: Gain) -> str:
    """Return how well a gain is known; empty where that is not known, or it is exact."""
    if gain.interval is None or gain.interval[0] == gain.interval[1]:
        return ""
    if gain.is_hardly_known:
        return "hardly known"
    return f"{factor_text(gain.interval[0])} to {factor_text(gain.interval[1])}"


def factor_text(factor: float) -> str:
    """Return a factor with two digits behind the point, and none where it is large."""
    return f"{factor:.2f}" if 0.01 <= factor < 100 else f"{factor:,.2g}" if factor < 100 else f"{factor:,.0f}"
