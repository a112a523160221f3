from __future__ import annotations

import pytest
import torch
from torch import nn

from memsweep.measure.live import LiveTensors, held_tensor_bytes
from memsweep.units import MIB


def block(n_mebibytes: int) -> torch.Tensor:
    return torch.empty(n_mebibytes * MIB, dtype=torch.uint8)


def test_the_peak_is_what_was_alive_at_once_and_not_what_was_made() -> None:
    with LiveTensors(static_bytes=7 * MIB) as live:
        first = block(64)
        del first
        second, third = block(32), block(32)

    assert live.peak_bytes == (7 + 64) * MIB
    del second, third


def test_a_peak_in_the_middle_is_seen() -> None:
    kept = []
    with LiveTensors() as live:
        kept.append(block(16))
        passing = block(48)
        del passing
        kept.append(block(16))

    assert live.peak_bytes == (16 + 48) * MIB


def test_each_piece_of_work_has_a_peak_of_its_own() -> None:
    with LiveTensors() as first:
        kept = block(64)
    with LiveTensors(static_bytes=64 * MIB) as second:
        block(8)

    assert first.peak_bytes == 64 * MIB
    assert second.peak_bytes == (64 + 8) * MIB
    del kept


def test_nothing_made_is_nothing_over_the_start() -> None:
    with LiveTensors(static_bytes=5) as live:
        pass

    assert live.peak_bytes == 5


def test_a_failure_inside_comes_out_and_stops_the_record() -> None:
    with pytest.raises(ValueError, match="inside"), LiveTensors() as live:
        block(1)
        raise ValueError("inside")

    assert live.peak_bytes == MIB
    assert not torch._C._autograd._profiler_enabled()


def test_gradients_made_by_a_backward_pass_count() -> None:
    layer = nn.Linear(1024, 1024, bias=False)
    inputs = torch.ones(2, 1024)
    with LiveTensors() as live:
        layer(inputs).sum().backward()

    assert 4 * MIB <= live.peak_bytes < 4 * MIB + 64 * 1024


def test_held_bytes_count_weights_gradients_and_state_once() -> None:
    layer = nn.Linear(256, 256, bias=False)
    tied = nn.Linear(256, 256, bias=False)
    tied.weight = layer.weight
    layer.register_buffer("scale", torch.ones(1000))
    size = 256 * 256 * 4
    assert held_tensor_bytes([layer, tied, None]) == size + 4000

    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 256)).sum().backward()
    optimizer.step()
    state_bytes = held_tensor_bytes([layer, tied], optimizer) - 2 * size - 4000

    assert 2 * size <= state_bytes <= 2 * size + 64  # two moments, and the count of steps

    optimizer.zero_grad()

    assert held_tensor_bytes([layer], optimizer) == 3 * size + 4000 + state_bytes - 2 * size


def test_views_of_one_storage_are_not_counted_again() -> None:
    weights = torch.zeros(2, 1000)
    module = nn.ParameterList([nn.Parameter(weights[0]), nn.Parameter(weights[1])])

    assert held_tensor_bytes([module]) == 8000


def test_what_hangs_on_a_quantized_weight_counts() -> None:
    class State:
        def __init__(self, nested: State | None = None) -> None:
            self.absmax, self.nested = torch.zeros(100), nested

    module = nn.Linear(10, 10, bias=False)
    module.weight.quant_state = State(nested=State())  # type: ignore[attr-defined]
    module.weight.module = module  # type: ignore[attr-defined]

    assert held_tensor_bytes([module]) == 400 + 2 * 400
