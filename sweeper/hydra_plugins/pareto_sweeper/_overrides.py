"""What was typed, as parameters to search and overrides to pass on.

Hydra's own parser reads everything, so its whole grammar works.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.types import (
    ChoiceSweep,
    Glob,
    IntervalSweep,
    Override,
    RangeSweep,
)
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from memsweep.errors import ConfigError
from memsweep.search.grammar import label_text
from memsweep.search.parameter import Fixed, Parameter

from ._groups import options_of

_LONGEST_RANGE = 100_000


def key_of(override: Override) -> str:
    """Return what an override is about, without `+` and `~`."""
    package = "" if override.package is None else f"@{override.package}"
    return override.key_or_group + package


def fixed(override: Override) -> Fixed:
    """Return an override that is passed on as it was typed."""
    text = str(override.input_line)
    if "shuffle(" in text and override.value_type is not None:
        # Read again it would be shuffled again: every trial is to get the same.
        text = f"{override.get_key_element()}={override.get_value_element_as_str()}"
    return Fixed(key=key_of(override), text=text, value=override.value())


def searched(override: Override, seed: int) -> Parameter:
    """Return an override that names several values.

    Args:
        override: One of Hydra's sweeps.
        seed: Decides the order where `shuffle` asks for one.

    Raises:
        ConfigError: If it names no value, or one twice.
    """
    sweep = override._value
    if override.is_interval_sweep():
        assert isinstance(sweep, IntervalSweep)
        return _parameter(override, _interval(str(override.input_line), sweep), (), ())
    elements = _elements(override)
    if getattr(sweep, "shuffle", False):
        random.Random(f"{seed} {key_of(override)}").shuffle(elements)
    labels = tuple(label_text(element) for element in elements)
    values = tuple(Override._convert_value(element) for element in elements)
    _require_distinct(override, labels, values)
    if isinstance(sweep, RangeSweep):
        return _parameter(override, _range(sweep, values), labels, values)
    return _parameter(override, CategoricalDistribution(labels), labels, values)


def _elements(override: Override) -> list[Any]:
    sweep = override._value
    if isinstance(sweep, RangeSweep):
        try:
            numbers = iter(sweep.range())
            elements = [number for _, number in zip(range(_LONGEST_RANGE + 1), numbers, strict=False)]
        except (ArithmeticError, ValueError) as error:  # a step of 0, an end that is no number
            raise ConfigError(
                f"{override.input_line}: a range needs finite numbers, and a step other than 0"
            ) from error
        if len(elements) > _LONGEST_RANGE:
            raise ConfigError(
                f"{override.input_line} names more than {_LONGEST_RANGE:,} values; "
                f"int(interval(first,last)) searches integers without listing them"
            )
    elif isinstance(sweep, ChoiceSweep):
        elements = list(sweep.list)
    else:
        assert isinstance(sweep, Glob)
        loader, group = override.config_loader, override.key_or_group
        offered = [] if loader is None else options_of(loader, group)
        elements = list(sweep.filter(offered))
        if not elements:
            has = ", ".join(offered) or "no options"
            raise ConfigError(f"{override.input_line} names no option; {group} has {has}")
    if not elements:
        raise ConfigError(f"{override.input_line} names no value")
    return elements


def _require_distinct(override: Override, labels: Sequence[str], values: Sequence[Any]) -> None:
    seen: dict[str, str] = {}
    for label, value in zip(labels, values, strict=True):
        identity = f"{type(value).__name__} {value!r}"
        if identity in seen:
            raise ConfigError(
                f"{override.input_line} names one value twice: {seen[identity]} and {label}; leave one out"
            )
        seen[identity] = label


def _interval(text: str, sweep: IntervalSweep) -> BaseDistribution:
    """Return [start, end) as a distribution: Hydra's intervals do not hold their end."""
    start, end = sweep.start, sweep.end
    assert start is not None
    assert end is not None
    is_integer = isinstance(start, int) and isinstance(end, int)
    is_finite = math.isfinite(start) and math.isfinite(end)
    if not is_finite or start >= end or (("log" in sweep.tags) and start <= 0):
        raise ConfigError(
            f"{text}: an interval needs finite start < end, and start > 0 where it is logarithmic"
        )
    if is_integer:
        return IntDistribution(int(start), int(end) - 1, log="log" in sweep.tags)
    return FloatDistribution(start, math.nextafter(end, start), log="log" in sweep.tags)


def _range(sweep: RangeSweep, values: Sequence[Any]) -> BaseDistribution:
    low, high, step = min(values), max(values), abs(sweep.step)
    if all(isinstance(value, int) for value in values):
        return IntDistribution(low, high, step=int(step))
    return FloatDistribution(low, high, step=step if high > low else None)


def _parameter(
    override: Override, distribution: BaseDistribution, labels: tuple[str, ...], values: tuple[Any, ...]
) -> Parameter:
    key = key_of(override)
    return Parameter(
        name=key,
        key=key,
        typed=override.get_key_element(),
        distribution=distribution,
        labels=labels,
        values=values,
    )
