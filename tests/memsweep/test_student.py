"""Student's t quantiles: the published table, and no seam where the table ends."""

from __future__ import annotations

import pytest

from memsweep.student import t_quantile_95


@pytest.mark.parametrize(
    ("degrees_of_freedom", "published"),
    # Source: NIST/SEMATECH e-Handbook 1.3.6.7.2, column 0.975.
    [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (31, 2.040), (60, 2.000), (100, 1.984)],
)
def test_quantiles_are_those_that_are_published(degrees_of_freedom: int, published: float) -> None:
    assert t_quantile_95(degrees_of_freedom) == pytest.approx(published, abs=0.001)


def test_more_values_never_widen_an_interval() -> None:
    quantiles = [t_quantile_95(n) for n in range(1, 200)]

    assert quantiles == sorted(quantiles, reverse=True)
    assert t_quantile_95(10**9) == pytest.approx(1.96, abs=0.001)


@pytest.mark.parametrize("degrees_of_freedom", [0, -1])
def test_one_value_alone_has_no_spread(degrees_of_freedom: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        t_quantile_95(degrees_of_freedom)
