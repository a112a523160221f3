from __future__ import annotations

from typing import Any

import pytest

from memsweep.findings.peak import peak_text
from memsweep.units import MIB


def test_on_a_cpu_it_is_what_was_added_and_what_was_there_is_told() -> None:
    said = peak_text({"device": "cpu", "memory": {"start_anonymous_bytes": 412 * MIB}})

    assert "growth of anonymous memory" in said
    assert "held 412.0 MiB by then: add that" in said


def test_on_cuda_it_is_what_was_reserved() -> None:
    assert "what PyTorch reserved" in peak_text({"device": "cuda:0", "memory": {"kind": "peak reserved"}})


@pytest.mark.parametrize("facts", [{}, {"memory": None}, {"memory": {}, "device": "cpu"}])
def test_what_was_not_recorded_is_not_made_up(facts: dict[str, Any]) -> None:
    assert peak_text(facts) == ""
