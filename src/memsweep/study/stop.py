"""When is a study over, before its space is?  Rules over all of its trials, each of which may be left out.

    n_trials            so many trials have been run
    max_seconds         the next would end after so much wall time, by the median of those before
    max_device_hours    the next would end after so much time on devices, likewise
    stagnation          so many trials in a row have hardly moved the front
    max_failures        more than so many have crashed, or gave no finite number
    max_failure_rate    more than this share of n_trials has
    fail_fast           the first has

A limit of time lets no run begin that would end beyond it; one that runs is let end.  So the last may end
late, where it takes longer than the median.  Before any has ended nothing is known, and one runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from memsweep.findings.covered import covered
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.search.tell import counts_as_trial, is_failure
from memsweep.units import seconds_text

HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRules:
    """What ends a study; None for a rule that is left out.

    Attributes:
        n_trials: Trials that count.
        max_seconds: Wall time.
        max_device_hours: Time of all runs together, each times the devices that it has to itself.
        stagnation: Trials in a row that count.
        stagnation_tolerance: Share by which the front's hypervolume must have grown over those.
        max_failure_rate: Share of `n_trials`, from 0 to 1.
        max_failures: Trials.
        fail_fast: Whether one failure is one too many.
    """

    n_trials: int
    max_seconds: float | None = None
    max_device_hours: float | None = None
    stagnation: int | None = None
    stagnation_tolerance: float = 0.001
    max_failure_rate: float = 1.0
    max_failures: int | None = None
    fail_fast: bool = False

    @property
    def limit_time(self) -> bool:
        """Whether it is of any concern how long runs take."""
        return self.max_seconds is not None or self.max_device_hours is not None

    @property
    def in_force(self) -> tuple[str, ...]:
        """Say when the study ends, one phrase a rule."""
        found = ["1 trial" if self.n_trials == 1 else f"{self.n_trials:,} trials"]
        if self.max_seconds is not None:
            found.append(seconds_text(self.max_seconds))
        if self.max_device_hours is not None:
            found.append(f"{seconds_text(self.max_device_hours * HOUR_SECONDS)} of device time")
        if self.stagnation is not None:
            share = f"{self.stagnation_tolerance:.2%}" if self.stagnation_tolerance else "anything"
            found.append(f"{self.stagnation} trials in a row that do not grow the front by {share}")
        if self.fail_fast:
            return (*found, "the first failure")
        if self.max_failures is not None:
            found.append(f"more than {_failures_text(self.max_failures)}")
        if self.max_failure_rate < 1:
            allowed = int(self.max_failure_rate * self.n_trials)
            found.append(f"more than {_failures_text(allowed)} ({self.max_failure_rate:.0%} of the trials)")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a study has taken until now.

    Attributes:
        wall_seconds: Since it began.
        device_seconds: Of all runs that have ended, repeats too, each times its devices.
        ahead_seconds: Time that runs which are still owed for what has been measured will take, together.
        n_slots: How many runs there are side by side.
    """

    wall_seconds: float
    device_seconds: float = 0.0
    ahead_seconds: float = 0.0
    n_slots: int = 1


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a study is over.

    Attributes:
        why: In words.
        has_failed: It ends because too much went wrong, whatever was found.
    """

    why: str
    has_failed: bool = False


def stop(rules: StopRules, study: Study, results: Sequence[TrialResult], spent: Spent) -> Stop | None:
    """Return why no further trial is to begin; None when one is.

    Args:
        rules: What ends the study.
        study: Its objectives, and the worst corner that hypervolumes go to.
        results: Its trials, in the order they finished.
        spent: What it has taken.
    """
    failed = failure(rules, results)
    if failed is not None:
        return failed
    n_counted = sum(map(counts_as_trial, results))
    if n_counted >= rules.n_trials:
        return Stop(f"{n_counted} trials")
    late = out_of_time(rules, results, spent)
    if late is not None:
        return late
    return None if rules.stagnation is None else _stagnated(rules, study, results)


def failure(rules: StopRules, results: Sequence[TrialResult]) -> Stop | None:
    """Return why too much has gone wrong; None when it has not."""
    failed = [result for result in results if is_failure(result)]
    if rules.fail_fast and failed:
        return Stop(f"fail_fast: trial {failed[0].number} {failed[0].outcome.text}", has_failed=True)
    if rules.max_failures is not None and len(failed) > rules.max_failures:
        why = f"max_failures: {_failures_text(len(failed))}, {rules.max_failures} are allowed"
        return Stop(why, has_failed=True)
    if len(failed) > rules.max_failure_rate * rules.n_trials:
        return Stop(f"more than {rules.max_failure_rate:.0%} of the trials failed", has_failed=True)
    return None


def out_of_time(rules: StopRules, results: Sequence[TrialResult], spent: Spent) -> Stop | None:
    """Return why there is no time for a further run; None when there is.

    Args:
        rules: The limits.
        results: The trials that have finished; their median is what a run is taken to need.
        spent: What the study has taken.
    """
    each = seconds_a_run(results) if rules.limit_time else None
    if each is None:
        return None
    a_run = f"a trial takes {seconds_text(each)}"
    if rules.max_seconds is not None:
        ahead = spent.ahead_seconds / spent.n_slots
        if spent.wall_seconds + ahead + each > rules.max_seconds:
            kept = f", {seconds_text(ahead)} are kept for measuring again" if ahead else ""
            taken = f"{seconds_text(spent.wall_seconds)} of {seconds_text(rules.max_seconds)} are over"
            return Stop(f"max_seconds: {taken}, {a_run}{kept}")
    if rules.max_device_hours is not None:
        limit = rules.max_device_hours * HOUR_SECONDS
        if spent.device_seconds + spent.ahead_seconds + each > limit:
            taken = f"{seconds_text(spent.device_seconds)} of {seconds_text(limit)} are used"
            return Stop(f"max_device_hours: {taken}, {a_run}")
    return None


def seconds_a_run(results: Sequence[TrialResult]) -> float | None:
    """Return the median wall time of the trials that were run; None when there was none."""
    seconds = [r.seconds["total"] for r in results if counts_as_trial(r) and "total" in r.seconds]
    return median(seconds) if seconds else None


def _stagnated(rules: StopRules, study: Study, results: Sequence[TrialResult]) -> Stop | None:
    """Return why the front is taken to have come to rest; None while it moves, or where there was none."""
    assert rules.stagnation is not None
    places = [place for place, result in enumerate(results, start=1) if counts_as_trial(result)]
    if len(places) <= rules.stagnation:
        return None
    before = _hypervolume(study, results[: places[-rules.stagnation - 1]])
    now = _hypervolume(study, results)
    if before is None or now is None or now > before * (1 + rules.stagnation_tolerance):
        return None
    grown = f"{now / before - 1:.2%}" if before else "nothing"
    return Stop(f"stagnation: {rules.stagnation} trials in a row have grown the front by {grown}")


def _hypervolume(study: Study, results: Sequence[TrialResult]) -> float | None:
    """Return what the front of some trials covers; None where there is no front, or no corner."""
    return covered(study, [result for result in results if result.feasible and result.reused_from is None])


def _failures_text(count: int) -> str:
    return "1 failure" if count == 1 else f"{count} failures"
