"""The words that reports use for measures, changes and outcomes.

Nothing in them asks the reader to know Optuna, Hydra or this package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memsweep.findings.intervals import n_runs
from memsweep.record.study import Constraint, Study
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text

NAMES = {"tokens_per_second": "throughput", "peak_memory_bytes": "peak memory"}
"""Measures that have a better name than their own."""

CHANGES = {
    "numerics": "how numbers are rounded",
    "batch": "which examples share a step",
    "trained_parameters": "which parameters are trained, or how",
    "data": "what it trains on",
}
"""What a set-up changes beside speed and memory, in words that follow `changes`."""

OUTCOMES = {
    "measured": "measured",
    "reused": "same set-up as another",
    "out_of_memory": "out of memory",
    "cut_short": "cut short",
    "incompatible": "incompatible",
    "not_in_force": "not in force",
    "timed_out": "timed out",
    "non_finite": "not finite",
    "crashed": "crashed",
    "interrupted": "interrupted",
}
"""Outcome types in words."""

QUICK = (
    "Quick figures show large differences and are not for quoting: in two quick studies one set-up came out "
    "at 1.2 and at 2.0 times the baseline. For figures to quote: measure=standard"
)
"""What stands beside a front that was measured quickly; seen in two studies of the default space."""

SHOWN_NUMBERS = 6
"""Trials that are named for one reason."""

PHASES = {
    "compose": "composing the configuration",
    "fork": "making the process",
    "start": "starting the process",
    "data": "preparing data",
    "build": "building model and trainer",
    "warm_up": "warming up",
    "measure": "measuring",
    "end": "writing the outcome",
}
"""Phases of a trial in words, in their order."""


def name_text(name: str) -> str:
    """Return a measure's name in words, without its unit."""
    words = re.sub(r"_(bytes|seconds|ratio|share)$", "", name).replace("_per_second", " per second")
    return NAMES.get(name, words.replace("_", " "))


def changes_text(changes: Sequence[str]) -> str:
    """Return what a set-up changes, as a phrase: `Changes what it trains on`."""
    if not changes:
        return "Trains exactly what the baseline trains"
    words = [CHANGES.get(change, change.replace("_", " ")) for change in changes]
    return "Changes " + " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def constraint_text(constraint: Constraint) -> str:
    """Return a demand in words: `peak memory at most 24.0 GiB`; empty when it demands nothing."""
    bound = "" if constraint.bound is None else measure_text(constraint.measure, constraint.bound)
    if constraint.of_baseline:
        bound = f"the baseline's ({bound})" if bound else "the baseline's"
    side = "at most" if constraint.upper else "at least"
    return f"{name_text(constraint.measure)} {side} {bound}" if bound else ""


def outcome_text(result: TrialResult) -> str:
    """Return how a trial ended, in a word or two."""
    if result.outcome.type == "measured" and result.unlike:
        return "measured, not comparable"
    if result.outcome.type == "measured" and not result.feasible:
        return "measured, not feasible"
    return OUTCOMES[result.outcome.type]


def reason_text(result: TrialResult, study: Study) -> str:
    """Return why a trial is not on offer: constraints it breaks, or how it ended; empty when it is."""
    if not result.objectives:
        return result.outcome.text
    reasons = [] if result.reused_from is None else [f"same set-up as trial {result.reused_from}"]
    reasons += result.objections
    for name, violation in result.constraints.items():
        constraint = study.constraints.get(name)
        if violation > 0 and constraint is not None:
            missed = measure_text(constraint.measure, violation)
            reasons.append(f"misses {constraint_text(constraint)} by {missed}")
        elif violation > 0:
            reasons.append(f"misses {name.replace('_', ' ')} by {violation:,.4g}")
    return "; ".join(reasons)


def tie_text(numbers: Sequence[int]) -> str:
    """Return which trials one cannot be told from, as a phrase: `tied with 4 and 9`; empty for none."""
    if not numbers:
        return ""
    words = [", ".join(map(str, numbers[:-1])), str(numbers[-1])] if numbers[1:] else [str(numbers[0])]
    return f"tied with {' and '.join(words)}"


def remarks_text(result: TrialResult) -> str:
    """Return what a reader must know before believing a trial's figures; empty when nothing."""
    return "; ".join(result.remarks)


def runs_text(result: TrialResult) -> str:
    """Return over how many runs a trial's figures are medians; empty for one run."""
    count = n_runs(result)
    return f"median of {count} runs" if count > 1 else ""


def caution(study: Study) -> str:
    """Return why the figures of a study are not for quoting, and what to type; empty when they are."""
    return QUICK if study.context.get("measure") == "quick" else ""


def trials_text(n_trials: int) -> str:
    """Return a number of trials in words."""
    return "1 trial" if n_trials == 1 else f"{n_trials:,} trials"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return outcome counts as a phrase: `19 measured, 3 out of memory`."""
    return ", ".join(f"{count:,} {OUTCOMES[name]}" for name, count in counts.items())


def numbers_text(numbers: Sequence[int]) -> str:
    """Return trials by number, those beyond the first few as a count: `trials 1, 2 and 3 more`."""
    if len(numbers) == 1:
        return f"trial {numbers[0]}"
    more = len(numbers) - SHOWN_NUMBERS
    shown = ", ".join(map(str, numbers[:SHOWN_NUMBERS]))
    return f"trials {shown}" + (f" and {more} more" if more > 0 else "")
