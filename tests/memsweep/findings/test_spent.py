from __future__ import annotations

import pytest

from memsweep.findings.spent import spent
from memsweep.record.outcome import Crashed, Phase
from synthetic import ended, measured

BASELINE = {"adapter": "baseline"}


def test_time_is_told_by_phase_in_the_order_of_a_trials_life() -> None:
    seconds = [{"measure": 2.0, "build": 1.0, "total": 4.0}, {"build": 1.0, "total": 1.5}]

    found = spent(measured(n, BASELINE, seconds=one) for n, one in enumerate(seconds))

    assert found.phases == (("build", 2.0), ("measure", 2.0))
    assert found.total == pytest.approx(5.5)
    assert found.rest == pytest.approx(1.5)


def test_time_is_told_by_how_trials_ended() -> None:
    crash = ended(1, BASELINE, Crashed(reason="a test", phase=Phase.BUILD))

    found = spent([measured(0, BASELINE), crash])

    assert [(name, count) for name, count, _ in found.outcomes] == [("measured", 1), ("crashed", 1)]
    assert sum(seconds for _, _, seconds in found.outcomes) == pytest.approx(found.total)


def test_nothing_recorded_is_nothing_spent() -> None:
    assert spent([measured(0, BASELINE, seconds={})]).total == 0
