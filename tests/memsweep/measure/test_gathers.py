from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from memsweep.measure.gathers import GatherCount, gather_count, is_whole


class Gathered:
    """Stands in for DeepSpeed's context."""

    def __enter__(self) -> str:
        return "whole"

    def __exit__(self, *_: object) -> None:
        pass


def test_every_entry_counts_until_it_is_closed_and_enters_as_before() -> None:
    entered = Gathered.__enter__
    count = GatherCount(Gathered)
    with Gathered() as whole:
        pass
    with Gathered():
        pass
    count.close()
    with Gathered():
        pass

    assert whole == "whole"
    assert count.n_gathers == 2
    assert Gathered.__enter__ is entered


def test_only_weights_that_are_held_in_parts_can_be_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = SimpleNamespace(zero=SimpleNamespace(GatheredParameters=Gathered))
    monkeypatch.setitem(sys.modules, "deepspeed", engine)
    model = torch.nn.Linear(2, 2)
    trainer = SimpleNamespace(model=model)

    assert gather_count(trainer) is None
    model.weight.ds_tensor = torch.zeros(2)  # type: ignore[assignment]
    found = gather_count(trainer)
    assert found is not None
    found.close()


def test_a_model_is_whole_while_none_of_its_weights_is_in_parts() -> None:
    model = torch.nn.Linear(2, 2)
    assert is_whole(model)

    model.weight.ds_tensor = torch.zeros(2)  # type: ignore[assignment]
    assert is_whole(model)  # gathered, or too small to be shared out
    model.weight.data = torch.empty(0)
    assert not is_whole(model)
