from __future__ import annotations

from types import SimpleNamespace

from memsweep.measure.sign_of_life import SignOfLife


def test_each_step_says_that_training_goes_on() -> None:
    said: list[int] = []
    callback = SignOfLife(lambda: said.append(1))
    for _ in range(3):
        callback.on_step_end(SimpleNamespace(), SimpleNamespace(), SimpleNamespace(), model=None)

    assert len(said) == 3
