"""How much a study's front covers, up to the worst corner that the study has fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memsweep.pareto.hypervolume import hypervolume, losses_of
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult


def covered(study: Study, feasible: Sequence[TrialResult]) -> float | None:
    """Return the hypervolume of feasible trials; None without any, or before the corner is fixed.

    Args:
        study: Its objectives, and the worst corner.
        feasible: Trials; those that others dominate add nothing.
    """
    names = list(study.objectives)
    if not feasible or set(study.reference) != set(names):
        return None
    maximize = [direction is Direction.MAXIMIZE for direction in study.objectives.values()]
    logarithmic = [study.reference[name].logarithmic for name in names]
    values = np.array([[result.objectives[name] for name in names] for result in feasible])
    # Zero on an axis of ratios is infinitely bad: it covers nothing.
    values = values[(values[:, logarithmic] > 0).all(axis=1)]
    corner = np.array([[study.reference[name].value for name in names]])
    return hypervolume(losses_of(values, maximize, logarithmic), losses_of(corner, maximize, logarithmic)[0])
