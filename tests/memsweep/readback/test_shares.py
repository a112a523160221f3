from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from memsweep.readback.shares import n_here, n_numbers, optimizer_share, shape, updated, weights_share


def part_of(whole: int, here: int) -> torch.nn.Parameter:
    """Return a weight as DeepSpeed holds it: empty, with its part beside it."""
    weight: Any = torch.nn.Parameter(torch.empty(0))
    weight.ds_numel, weight.ds_shape, weight.ds_tensor = whole, torch.Size([whole // 2, 2]), torch.zeros(here)
    return weight  # type: ignore[no-any-return]


class Model(torch.nn.Module):
    def __init__(self, *weights: torch.nn.Parameter) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(weights)


def trainer_of(model: torch.nn.Module, optimizer: Any) -> Any:
    return SimpleNamespace(model=model, optimizer=optimizer)


def test_a_weight_that_is_whole_is_all_here() -> None:
    weight = torch.nn.Parameter(torch.zeros(3, 4))

    assert (n_numbers(weight), n_here(weight), shape(weight)) == (12, 12, [3, 4])
    assert weights_share(Model(weight)) == 1.0


def test_of_a_weight_in_parts_the_whole_is_still_known() -> None:
    weight = part_of(10, 5)

    assert (n_numbers(weight), n_here(weight), shape(weight)) == (10, 5, [5, 2])
    assert weights_share(Model(weight, torch.nn.Parameter(torch.zeros(10)))) == 0.75


def test_an_optimizer_without_an_engine_updates_what_is_in_its_groups() -> None:
    model = Model(torch.nn.Parameter(torch.zeros(6)), torch.nn.Parameter(torch.zeros(2), requires_grad=False))
    optimizer = torch.optim.SGD([model.weights[0]], lr=0.1)
    wrapped = SimpleNamespace(optimizer=optimizer)

    assert [tensor.numel() for tensor in updated(wrapped)] == [6]
    assert optimizer_share(trainer_of(model, wrapped)) == 1.0
    assert optimizer_share(trainer_of(model, None)) is None


def test_an_engine_updates_its_part_of_what_is_trained() -> None:
    model = Model(part_of(8, 4))
    engine = SimpleNamespace(fp32_partitioned_groups_flat=[torch.zeros(4)], optimizer=None)

    assert optimizer_share(trainer_of(model, SimpleNamespace(optimizer=engine))) == 0.5
