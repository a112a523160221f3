"""What was typed, as parameters to search and overrides to pass on.

Hydra's own parser reads everything, so its whole grammar works.  A value that the sampler may choose is
kept as the text that makes Hydra read that value again, and is never anything but text until then:
`1`, `1.0`, `true`, `'1'` and `null` stay five different things.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    Glob,
    IntervalSweep,
    Override,
    Quote,
    QuotedString,
    RangeSweep,
)
from hydra.errors import HydraException
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from memsweep.errors import ConfigError

from ._groups import options_of

_LONGEST_RANGE = 100_000
_parser = OverridesParser.create()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """An override that is not searched.

    Attributes:
        key: What it is about, with its package, without `+`: `technique/adapter`, `db@source`.
        text: As typed.
        value: What Hydra reads in it; None for a deletion.
    """

    key: str
    text: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A key whose value is searched.

    Attributes:
        name: What Optuna calls it: the key, unless several parameters share one.
        key: What it is about, as in `Fixed`.
        typed: The key with its `+`, as a trial gets it.
        distribution: What the sampler draws from.
        labels: Every value as override text, in the order typed; empty for an interval.
        values: What Hydra reads in each label.
        parent: Name of the parameter that must have one of `among` for this one to exist; None if it
            always does.
        among: Labels of `parent`.
    """

    name: str
    key: str
    typed: str
    distribution: BaseDistribution
    labels: tuple[str, ...]
    values: tuple[Any, ...]
    parent: str | None = None
    among: frozenset[str] = frozenset()

    @property
    def first(self) -> str:
        """The label that stands for it where nothing has been chosen yet."""
        return self.labels[0] if self.labels else str(self.distribution.low)  # type: ignore[attr-defined]

    def label(self, drawn: Any) -> str:
        """Return the override text of what the sampler has drawn."""
        if isinstance(self.distribution, CategoricalDistribution):
            return str(drawn)
        if not self.labels:
            return repr(drawn)
        nearest = min(range(len(self.values)), key=lambda index: abs(self.values[index] - drawn))
        return self.labels[nearest]

    def drawn(self, label: str) -> Any:
        """Return what the sampler would have drawn for `label`; None if it never would."""
        if isinstance(self.distribution, CategoricalDistribution):
            return label if label in self.labels else None
        value = read_value(label)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if self.distribution._contains(value) else None

    def value(self, label: str) -> Any:
        """Return what Hydra reads in `label`."""
        return self.values[self.labels.index(label)] if label in self.labels else read_value(label)


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


def label_text(element: Any) -> str:
    """Return the text that Hydra reads as `element`, which its grammar has parsed or a file has given."""
    if isinstance(element, list):
        return "[" + ",".join(label_text(item) for item in element) + "]"
    if isinstance(element, dict):
        render = Override._get_value_element_as_str
        return "{" + ",".join(f"{render(key)}:{label_text(item)}" for key, item in element.items()) + "}"
    text = Override._get_value_element_as_str(element)
    if isinstance(element, str) and (not element or not _reads(text, element)):
        # str(1) is text and not a number; a file may hold what cannot be typed without quotes.
        return QuotedString(text=element, quote=Quote.single).with_quotes()
    return text


def _reads(text: str, value: str) -> bool:
    try:
        return bool(read_value(text) == value)
    except ConfigError:
        return False


@lru_cache(maxsize=4096)
def read_value(text: str) -> Any:
    """Return what Hydra reads in the part of an override after `=`.

    Raises:
        ConfigError: If it is not one value.
    """
    try:
        override = _parser.parse_override(f"key={text}")
    except HydraException as error:
        raise ConfigError(f"{text!r} is no value in Hydra's override grammar: {error}") from error
    if override.is_sweep_override():
        raise ConfigError(f"{text!r} names several values where one is needed")
    return override.value()


def _elements(override: Override) -> list[Any]:
    sweep = override._value
    if isinstance(sweep, RangeSweep):
        numbers = iter(sweep.range())
        elements = [number for _, number in zip(range(_LONGEST_RANGE + 1), numbers, strict=False)]
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
    if start >= end or (("log" in sweep.tags) and start <= 0):
        raise ConfigError(f"{text}: an interval needs start < end, and start > 0 where it is logarithmic")
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
