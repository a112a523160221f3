"""A recommendation, or why there is none, as data for programs."""

from __future__ import annotations

from typing import Any

from memsweep.findings.advice import second_lines, why, wider_than
from memsweep.findings.find import Findings
from memsweep.findings.gains import baseline_gains
from memsweep.findings.intervals import ends
from memsweep.findings.recommend import Recommendation, Wish
from memsweep.findings.shortfall import Shortfall
from memsweep.findings.words import constraint_text
from memsweep.record.trial import TrialResult


def recommendation_data(findings: Findings, found: Recommendation) -> dict[str, Any]:
    """Return a recommendation as JSON-ready data."""
    wider = wider_than(findings, found)
    return {
        "study": findings.study.name,
        "wish": _wish(found.wish),
        "trial": _trial(findings, found.result),
        "why": why(findings, found),
        "runner_up": _trial(findings, found.runner_up),
        "why_second": " ".join(line.strip() for line in second_lines(findings, found)),
        "tied": list(found.tied),
        "baseline": _trial(findings, findings.baseline),
        "accepting_any_changes": _trial(findings, None if wider is None else wider.result),
        "n_compared": found.n_offered,
        "n_that_fit": found.n_fitting,
        "n_that_meet_all": found.n_left,
    }


def shortfall_data(findings: Findings, found: Shortfall) -> dict[str, Any]:
    """Return why there is no recommendation as JSON-ready data."""
    return {
        "study": findings.study.name,
        "wish": _wish(found.wish),
        "trial": None,
        "nearest": _trial(findings, found.nearest),
        "misses": [
            {"demand": constraint_text(miss.demand), "measure": miss.demand.measure, "by": miss.by}
            for miss in found.misses
        ],
        "saved_memory_elsewhere": [
            {
                "choice": saver.choice,
                "ratio": saver.ratio,
                "n_pairs": saver.n_pairs,
                "together": saver.together,
                "changes": list(saver.changes),
            }
            for saver in found.savers
        ],
        "accepting_any_changes": _trial(findings, None if found.wider is None else found.wider.result),
        "changing_least_and_surely": _trial(findings, None if found.modest is None else found.modest.result),
    }


def _wish(wish: Wish) -> dict[str, Any]:
    return {
        "memory_bytes": wish.memory_bytes,
        "min_speed": wish.min_speed,
        "prefer": str(wish.preference),
        "changes": "any" if wish.changes is None else sorted(wish.changes),
    }


def _trial(findings: Findings, result: TrialResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    ratios = {name: findings.ratio(result, name) for name in findings.objectives}
    known = {name: gain.interval for name, gain in baseline_gains(findings, result).items()}
    return {
        "number": result.number,
        "set_up": result.label,
        "choice": dict(result.choice),
        "parameters": dict(result.parameters),
        "changes": list(result.changes),
        "objectives": dict(result.objectives),
        "intervals": ends(result),
        "times_baseline": {name: ratio for name, ratio in ratios.items() if ratio is not None},
        "times_baseline_intervals": {name: list(ends) for name, ends in known.items() if ends is not None},
        "remarks": list(result.remarks),
        "command": result.command,
    }
