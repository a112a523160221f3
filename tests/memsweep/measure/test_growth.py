from __future__ import annotations

from itertools import accumulate

import pytest

from memsweep.measure.growth import growth
from memsweep.units import GIB, MIB


def edges_of(*increments: int, start: int = 100 * MIB) -> list[int]:
    return list(accumulate(increments, initial=start))


def test_memory_that_stays_does_not_grow() -> None:
    found = growth(edges_of(0, 0, 0), 400 * MIB)

    assert found is not None
    assert (found.bytes_per_pass, found.is_growing, found.remark) == (0, False, None)


def test_a_leak_is_found_with_its_size_a_pass() -> None:
    found = growth(edges_of(4 * MIB, 4 * MIB, 4 * MIB), 400 * MIB)

    assert found is not None
    assert found.bytes_per_pass == 4 * MIB
    assert found.remark == (
        "memory grows by 4.0 MiB a pass, seen over 3 passes: the peak is not the end of it"
    )


@pytest.mark.parametrize("increments", [(0, 64 * MIB), (64 * MIB, 0), (0, 64 * MIB, 0), (0, 0, 64 * MIB, 0)])
def test_a_single_step_is_no_leak(increments: tuple[int, ...]) -> None:
    found = growth(edges_of(*increments), 400 * MIB)

    assert found is not None
    assert not found.is_growing


def test_noise_around_a_leak_does_not_hide_it() -> None:
    found = growth(edges_of(9 * MIB, -2 * MIB, 5 * MIB, 4 * MIB, 4 * MIB), 400 * MIB)

    assert found is not None
    assert found.bytes_per_pass == 4 * MIB
    assert found.is_growing


def test_memory_that_is_given_back_does_not_grow() -> None:
    found = growth(edges_of(-8 * MIB, -8 * MIB), 400 * MIB)

    assert found is not None
    assert found.bytes_per_pass == -8 * MIB
    assert not found.is_growing


@pytest.mark.parametrize(
    ("increment", "peak_bytes", "is_growing"),
    [
        (MIB, 100 * MIB, False),
        (MIB + 1, 100 * MIB, True),
        (20 * MIB, 10 * GIB, False),  # 0.2 % of 10 GiB is 20.48 MiB
        (21 * MIB, 10 * GIB, True),
    ],
)
def test_what_counts_is_more_than_a_mebibyte_and_than_a_share_of_the_peak(
    increment: int, peak_bytes: int, is_growing: bool
) -> None:
    found = growth(edges_of(increment, increment), peak_bytes)

    assert found is not None
    assert found.is_growing is is_growing


@pytest.mark.parametrize("edges", [[], [5], [5, 500 * MIB]])
def test_one_pass_tells_nothing_about_growth(edges: list[int]) -> None:
    assert growth(edges, 400 * MIB) is None
