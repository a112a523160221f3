"""An interrupt is heard at once, or as soon as it does no harm."""

from __future__ import annotations

import os
import signal

import pytest

from hydra_plugins.pareto_sweeper._interrupts import Interrupts

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_it_is_heard_at_once(number: signal.Signals) -> None:
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


@SIGNALS
def test_it_waits_for_what_belongs_together(number: signal.Signals) -> None:
    done = []
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.held():
        os.kill(os.getpid(), number)
        done.append("one")
        done.append("two")

    assert done == ["one", "two"]


def test_what_was_there_before_is_there_again() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) is not before

    assert signal.getsignal(signal.SIGTERM) is before
