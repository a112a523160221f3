"""Why trials are not on offer: every reason once, with the trials that it holds for."""

from __future__ import annotations

from dataclasses import dataclass

from memsweep.findings.find import Findings
from memsweep.findings.words import outcome_text, reason_text
from memsweep.record.outcome import CutShort
from memsweep.record.trial import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One reason.

    Attributes:
        how: How these trials ended, in a word or two: `out of memory`.
        reason: Why they are not on offer; where several fell to one rule, without each one's figures.
        results: The trials, by number.
    """

    how: str
    reason: str
    results: tuple[TrialResult, ...]


def refusals(findings: Findings) -> tuple[Refusal, ...]:
    """Return why trials have no figures, or miss a demand: the most frequent reason first."""
    by_reason: dict[str, list[TrialResult]] = {}
    for result in findings.results:
        if not result.feasible and result.reused_from is None:
            outcome = result.outcome
            reason = outcome.rule if isinstance(outcome, CutShort) else reason_text(result, findings.study)
            by_reason.setdefault(reason, []).append(result)
    ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[1][0].number))
    return tuple(
        Refusal(
            how=outcome_text(results[0]),
            reason=reason if results[1:] else reason_text(results[0], findings.study),
            results=tuple(results),
        )
        for reason, results in ordered
    )
