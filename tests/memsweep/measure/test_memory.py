from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from memsweep.measure.memory import BudgetExceeded, HostMemory, Part
from memsweep.measure.resident import keep_in_memory, resident
from memsweep.units import MIB

# A page more or less of the interpreter's own.
SLACK = 1 * MIB


def held(n_mib: int) -> torch.Tensor:
    """Return a tensor of `n_mib` MiB that is really there."""
    return torch.full((n_mib * MIB // 4,), 1.0)


def test_256_mib_more_read_256_mib_more() -> None:
    memory = HostMemory()
    kept = held(256)
    memory.settle()

    assert memory.measures()["peak_memory_bytes"] == pytest.approx(kept.nbytes, rel=0.03)


def test_a_peak_counts_though_it_has_passed() -> None:
    memory = HostMemory()
    passing = held(128)
    del passing
    kept = held(16)
    memory.settle()

    assert memory.measures()["peak_memory_bytes"] == pytest.approx(128 * MIB, rel=0.03)
    assert memory.held_bytes() == pytest.approx(kept.nbytes, abs=2 * SLACK)


def test_what_came_before_does_not_count() -> None:
    before = held(512)
    del before
    gc.collect()

    memory = HostMemory()
    kept = held(10)
    memory.settle()

    assert memory.measures()["peak_memory_bytes"] == pytest.approx(kept.nbytes, abs=SLACK)


def test_memory_that_is_asked_for_and_never_touched_does_not_count() -> None:
    memory = HostMemory()
    reserved = torch.empty(512 * MIB // 4)
    memory.settle()

    assert memory.measures()["peak_memory_bytes"] < SLACK
    del reserved


def test_what_comes_after_the_settling_does_not_count() -> None:
    memory = HostMemory()
    memory.settle()
    kept = held(64)

    assert memory.measures()["peak_memory_bytes"] < SLACK
    del kept


def test_each_part_has_its_own_peak_and_the_highest_is_the_trials() -> None:
    memory = HostMemory()
    kept = held(16)
    memory.enter(Part.FIRST_STEP)
    passing = held(128)
    del passing
    memory.enter(Part.WORST_STEP)
    more = held(64)
    memory.settle()

    found = memory.measures()
    assert found["load_peak_bytes"] == pytest.approx(16 * MIB, abs=2 * SLACK)
    assert found["first_step_peak_bytes"] == pytest.approx((16 + 128) * MIB, rel=0.03)
    assert found["worst_step_peak_bytes"] == pytest.approx((16 + 64) * MIB, rel=0.03)
    assert found["peak_memory_bytes"] == found["first_step_peak_bytes"]
    del kept, more


# Alone in an interpreter: where a block comes from depends on the holes that all before it have left.
A_BLOCK_WHERE_ANOTHER_WAS = """
import json, torch
from memsweep.measure.memory import HostMemory

memory = HostMemory()
memory.settle()
passing = torch.full((30 * 2**18,), 1.0)  # 30 MiB: from the heap, and stays there when freed
del passing
in_use, resident = memory.in_use_bytes(), memory.held_bytes()
kept = torch.full((28 * 2**18,), 1.0)  # less: to be aligned, a block asks for more than it then takes
print(json.dumps([kept.nbytes, memory.in_use_bytes() - in_use, memory.held_bytes() - resident]))
"""


def test_a_block_that_fits_into_what_a_loose_allocator_keeps_is_in_use_all_the_same() -> None:
    command = [sys.executable, "-c", A_BLOCK_WHERE_ANOTHER_WAS]
    n_bytes, in_use, resident = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    assert in_use == pytest.approx(n_bytes, abs=SLACK)
    assert resident < n_bytes / 2


def test_a_budget_is_held_against_the_figure_that_is_reported() -> None:
    with HostMemory(budget_bytes=64 * MIB) as memory:
        kept = held(32)
        memory.check()
        more = held(48)

        with pytest.raises(BudgetExceeded, match=r"80\.\d MiB were needed, the budget is 64\.0 MiB"):
            memory.check()

        del kept, more


def test_a_request_far_beyond_the_budget_fails_at_once() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with HostMemory(budget_bytes=64 * MIB), pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
        torch.empty(4_096 * MIB // 4)

    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_weights_that_lie_in_a_file_are_taken_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"weight": torch.ones(1024, 8192), "bias": torch.ones(1024)}, path)
    layer = torch.nn.Linear(8192, 1024)
    layer.load_state_dict(load_file(path), assign=True)
    before = resident()

    copied = keep_in_memory(layer)

    assert copied == 1024 * 8192 * 4 + 1024 * 4
    assert resident().anonymous_bytes - before.anonymous_bytes == pytest.approx(32 * MIB, abs=SLACK)
    assert keep_in_memory(layer) == 0
