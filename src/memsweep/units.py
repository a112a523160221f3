"""Numbers as people read and type them.  The only place that rounds.

Inside the package bytes are `int`, times are seconds and rates are per second; text is made and read here.
"""

from __future__ import annotations

import math
import re

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

_UNIT_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(min|[smhd])")
_UNIT_BYTES = {
    "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": GIB << 10,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


def bytes_text(n_bytes: float) -> str:
    """Return `n_bytes` in the largest binary unit that keeps it at or above one."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(n_bytes) >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:,.0f} B"


def read_bytes(typed: object) -> int:
    """Return an amount of memory in bytes, as it may be typed: `"24GiB"`, `"24 GB"`, `"1.5MiB"`.

    Args:
        typed: A number with its unit; upper and lower case mean the same.

    Raises:
        ValueError: If it is no amount, has no unit or one that is not known, or is not above 0.
    """
    found = _SIZE.fullmatch(str(typed).strip())
    sizes = {unit.lower(): size for unit, size in _UNIT_BYTES.items()}
    size = float(found[1]) * sizes.get(found[2].lower(), 0) if found else 0.0
    n_bytes = round(size) if math.isfinite(size) else 0
    if n_bytes <= 0:
        units = ", ".join(_UNIT_BYTES)
        raise ValueError(f"must be memory above 0 with its unit ({units}), e.g. 24GiB, got {typed!r}")
    return n_bytes


def seconds_text(seconds: float) -> str:
    """Return a duration: `0.31 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def read_seconds(typed: object, unit: str = "s") -> float:
    """Return a duration in seconds, as it may be typed: `90`, `"30m"`, `"1.5h"`, `"2 h 5 min"`.

    Args:
        typed: A number, or lengths with their units (s, m or min, h, d) one after another.
        unit: Of a number that has none.

    Raises:
        ValueError: If it is no duration, or not above 0.
    """
    text = str(typed).strip()
    try:
        seconds = float(text) * _UNIT_SECONDS[unit]
    except ValueError:
        lengths, end = [], 0
        while found := _LENGTH.match(text, end):
            lengths.append(float(found[1]) * _UNIT_SECONDS[found[2]])
            end = found.end()
        seconds = sum(lengths) if end == len(text) else 0.0
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"must be a duration above 0 such as 90s, 30m, 2h or 1h30m, got {typed!r}")
    return seconds


def rate_text(per_second: float, noun: str = "tokens") -> str:
    """Return a rate: `1,172 tokens/s`."""
    return f"{per_second:,.0f} {noun}/s" if per_second >= 100 else f"{per_second:,.1f} {noun}/s"


def measure_text(name: str, value: float, interval: tuple[float, float] | None = None) -> str:
    """Return a measure with the unit that its name ends in: `_bytes`, `_seconds`, `_per_second`.

    Args:
        name: The measure's name.
        value: Its value.
        interval: The lowest and highest value it may have; then how far that is away follows, as a share.
    """
    if interval is not None:
        return f"{measure_text(name, value)} {_spread_text(name, value, interval)}"
    if name.endswith("_bytes"):
        return bytes_text(value)
    if name.endswith("_per_second"):
        return rate_text(value, name.removesuffix("_per_second").replace("_", " "))
    if name.endswith("_seconds"):
        return seconds_text(value)
    if name.endswith(("_ratio", "_share")):
        return f"{value:.3f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def _spread_text(name: str, value: float, interval: tuple[float, float]) -> str:
    """Return the longer arm of an interval: as a share of `value`, or with its unit where that is 0."""
    arm = max(value - interval[0], interval[1] - value, 0.0)
    sign = "\N{PLUS-MINUS SIGN}"
    if value == 0:
        return f"{sign}{measure_text(name, arm)}"
    percent = 100 * arm / abs(value)
    return f"{sign}{percent:,.0f} %" if percent >= 9.95 else f"{sign}{percent:.1f}".removesuffix(".0") + " %"
