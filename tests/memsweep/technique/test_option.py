from __future__ import annotations

import pytest

from memsweep.technique.option import Parameter


@pytest.mark.parametrize(
    ("default", "value", "problem"),
    [
        (16, 8, None),
        (16, 8.0, "must be int, got 8.0"),
        (16, True, "must be int, got True"),
        (0.5, 1, None),
        (0.5, "1", "must be float, got '1'"),
        (True, False, None),
        (True, 1, "must be bool, got 1"),
        ("a", "b", None),
        (16, None, "must be int, got None"),
    ],
)
def test_a_parameter_has_the_type_of_its_default(default: object, value: object, problem: str | None) -> None:
    parameter = Parameter(name="p", default=default, search=(), help="")  # type: ignore[arg-type]

    assert parameter.problem(value) == problem


def test_bounds_are_legal_values_themselves() -> None:
    parameter = Parameter(name="p", default=1, search=(), help="", minimum=1, maximum=3)

    assert [parameter.problem(value) for value in (0, 1, 3, 4)] == [
        "must be at least 1, got 0",
        None,
        None,
        "must be at most 3, got 4",
    ]
