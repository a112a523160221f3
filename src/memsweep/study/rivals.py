"""Whom a trial must beat, chosen from the trials so far.

A front is only fair among set-ups that train the same thing, and a report shows the front of those beside the
front of all.  So a trial's rivals change nothing that it does not change itself: one that trains adapters
never ends one that trains the whole model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from memsweep.findings.intervals import interval
from memsweep.pareto.front import on_front
from memsweep.record.comparable import MEMORY_SPREAD
from memsweep.record.rivals import Rival, Rivals
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult


def rivals(study: Study, results: Sequence[TrialResult], changes: Collection[str]) -> Rivals:
    """Return what a trial is held against while it is measured.

    Args:
        study: Its objectives and constraints; a bound that is not known yet ends no trial.
        results: The trials that have finished.
        changes: What the trial's choice changes beside speed and memory.
    """
    fair = [
        result
        for result in results
        if result.feasible and result.reused_from is None and set(result.changes) <= set(changes)
    ]
    losses = np.array(study.losses(fair), dtype=np.float64).reshape(len(fair), len(study.objectives))
    return Rivals(
        objectives=study.objectives,
        limits={name: c for name, c in study.constraints.items() if c.at_most is not None},
        best=tuple(
            _rival(result, study) for result, is_on in zip(fair, on_front(losses), strict=True) if is_on
        ),
        conditions=study.conditions,
        versions=study.trial_versions,
    )


def _rival(result: TrialResult, study: Study) -> Rival:
    worst = {}
    for name, direction in study.objectives.items():
        value = result.objectives[name]
        ends = interval(result, name) or (value, value)
        worst[name] = ends[0] if direction is Direction.MAXIMIZE else ends[1]
        # Passes of one run may agree to the byte; other runs of the same set-up do not.
        if direction is Direction.MINIMIZE and name.endswith("_bytes"):
            worst[name] = max(worst[name], value * (1 + MEMORY_SPREAD))
    return Rival(number=result.number, objectives=dict(result.objectives), worst=worst)
