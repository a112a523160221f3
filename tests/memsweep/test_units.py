from __future__ import annotations

import pytest

from memsweep.units import (
    GIB,
    KIB,
    MIB,
    bytes_text,
    measure_text,
    rate_text,
    read_bytes,
    read_seconds,
    seconds_text,
)


@pytest.mark.parametrize(
    ("n_bytes", "expected"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (KIB, "1.0 KiB"),
        (1.5 * MIB, "1.5 MiB"),
        (GIB - 1, "1,024.0 MiB"),
        (80 * GIB, "80.0 GiB"),
        (-2 * GIB, "-2.0 GiB"),
        (2048 * GIB, "2,048.0 GiB"),
    ],
)
def test_bytes_are_told_in_the_largest_unit_that_fits(n_bytes: float, expected: str) -> None:
    assert bytes_text(n_bytes) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.00 s"),
        (0.314, "0.31 s"),
        (12.4, "12 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_lose_what_nobody_reads(seconds: float, expected: str) -> None:
    assert seconds_text(seconds) == expected


@pytest.mark.parametrize(
    ("per_second", "noun", "expected"),
    [(1172.4, "tokens", "1,172 tokens/s"), (3.25, "steps", "3.2 steps/s"), (0.5, "steps", "0.5 steps/s")],
)
def test_rates_have_a_digit_more_when_small(per_second: float, noun: str, expected: str) -> None:
    assert rate_text(per_second, noun) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("peak_memory_bytes", 413 * MIB, "413.0 MiB"),
        ("tokens_per_second", 1172.0, "1,172 tokens/s"),
        ("steps_per_second", 2.0, "2.0 steps/s"),
        ("measured_seconds", 4.5, "4.50 s"),
        ("padding_share", 0.25, "0.250"),
        ("n_measured_steps", 8.0, "8"),
        ("loss", 2.34567, "2.346"),
    ],
)
def test_a_measures_unit_is_what_its_name_ends_in(name: str, value: float, expected: str) -> None:
    assert measure_text(name, value) == expected


@pytest.mark.parametrize(
    ("name", "value", "interval", "expected"),
    [
        ("tokens_per_second", 1045.0, (1014.0, 1070.0), "1,045 tokens/s ~3 %"),
        ("peak_memory_bytes", 413 * MIB, (413 * MIB * 0.996, 413 * MIB * 1.002), "413.0 MiB ~0.4 %"),
        ("loss", 2.0, (2.0, 2.0), "2 ~0 %"),
        ("loss", 2.0, (-1.0, 5.0), "2 ~150 %"),
        ("loss", 0.0, (-0.25, 0.5), "0 ~0.5"),
    ],
)
def test_an_interval_is_told_by_its_longer_arm(
    name: str, value: float, interval: tuple[float, float], expected: str
) -> None:
    assert measure_text(name, value, interval) == expected.replace("~", "\N{PLUS-MINUS SIGN}")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (90, 90),
        (0.5, 0.5),
        ("90", 90),
        ("45s", 45),
        ("30m", 1800),
        ("30 min", 1800),
        ("2h", 7200),
        ("1.5h", 5400),
        ("1h30m", 5400),
        (" 1d 2h ", 93_600),
    ],
)
def test_a_duration_may_be_typed_with_units(typed: object, expected: float) -> None:
    assert read_seconds(typed) == expected


def test_a_bare_number_is_in_the_unit_that_is_said() -> None:
    assert read_seconds(2, "h") == 7200
    assert read_seconds("30m", "h") == 1800


@pytest.mark.parametrize("seconds", [1, 59, 60, 200, 3599, 3600, 7500, 90_000])
def test_a_duration_that_was_told_can_be_typed(seconds: int) -> None:
    assert read_seconds(seconds_text(seconds)) == pytest.approx(seconds, abs=60 if seconds > 3600 else 0.5)


@pytest.mark.parametrize("typed", ["", "soon", "30x", "m", "2h30", "-5", 0, -1, True, "nan", "inf", "1h-5m"])
def test_what_is_no_duration_is_refused_with_an_example(typed: object) -> None:
    with pytest.raises(ValueError, match="must be a duration above 0 such as 90s, 30m"):
        read_seconds(typed)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("24GiB", 24 * GIB),
        ("24 gib", 24 * GIB),
        ("24GB", 24 * 10**9),
        ("512MiB", 512 * MIB),
        ("1.5 GiB", 3 * GIB // 2),
        ("100kB", 100_000),
        ("4096B", 4096),
    ],
)
def test_memory_is_typed_with_its_unit(typed: str, expected: int) -> None:
    assert read_bytes(typed) == expected


@pytest.mark.parametrize("n_bytes", [1023, 24 * GIB, 512 * MIB])
def test_memory_that_was_told_can_be_typed(n_bytes: int) -> None:
    assert read_bytes(bytes_text(n_bytes).replace(",", "")) == n_bytes


@pytest.mark.parametrize(
    "typed", ["", "24", "24G", "GiB", "-1GiB", "0GiB", "24GiBs", "0.0001B", "inf GiB", None]
)
def test_what_is_no_memory_is_refused_with_an_example(typed: object) -> None:
    with pytest.raises(ValueError, match=r"with its unit .* e.g. 24GiB, got"):
        read_bytes(typed)
