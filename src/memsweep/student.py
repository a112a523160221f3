"""Student's t: how much wider an interval is when the spread itself is only guessed from a few values."""

from __future__ import annotations

# Two-sided 95 %: the 0.975 quantiles for 1, 2, ... 30 degrees of freedom.
# Source: NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, column 0.975.
_QUANTILES_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)

# Source: the same table's last row, infinitely many degrees of freedom, with more digits.
_NORMAL_95 = 1.959964


def t_quantile_95(degrees_of_freedom: int) -> float:
    """Return what a standard error is multiplied by for half of a two-sided 95 % interval.

    To 30 degrees of freedom from the table; beyond, the first two terms of the expansion about the normal
    quantile z: `z + (z^3 + z) / 4n + (5 z^5 + 16 z^3 + 3 z) / 96n^2`, which is right to 0.001 there.
    Source: Abramowitz and Stegun 1964, Handbook of Mathematical Functions, 26.7.5.

    Args:
        degrees_of_freedom: One less than the number of values that the spread is taken from.

    Raises:
        ValueError: If it is less than 1: one value alone has no spread.
    """
    if degrees_of_freedom < 1:
        raise ValueError(f"degrees_of_freedom must be at least 1, got {degrees_of_freedom}")
    if degrees_of_freedom <= len(_QUANTILES_95):
        return _QUANTILES_95[degrees_of_freedom - 1]
    z, n = _NORMAL_95, degrees_of_freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
