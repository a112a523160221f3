"""What did a study search, in the form that Optuna's tools read?

The labels of a key are a categorical distribution, an interval is a numeric one.  A trial may hold a label
that the space does not list, because a person queued it or it is the baseline: it is one more category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from memsweep.record.study import Study
from memsweep.record.trial import TrialResult

_GROUP = "technique/"


def distributions(study: Study, results: Sequence[TrialResult]) -> dict[str, BaseDistribution]:
    """Return searched key to its distribution, in the order of the study, then of appearance."""
    typed: dict[str, list[str]] = {key: [] for key in study.parameters}
    for result in results:
        for key, label in result.parameters.items():
            typed.setdefault(key, []).append(label)
    found = {key: _distribution(study.parameters.get(key), labels) for key, labels in typed.items()}
    return {key: distribution for key, distribution in found.items() if distribution is not None}


def drawn(result: TrialResult, known: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return searched key to a trial's value, of those that its distribution can hold."""
    values = {key: _value(label, known.get(key)) for key, label in result.parameters.items()}
    return {key: value for key, value in values.items() if value is not None}


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Return key to what it is called on an axis: without `technique/`, where that leaves it its own name."""
    short = {key: key.removeprefix(_GROUP) for key in keys}
    names = list(short.values())
    return {key: name if names.count(name) == 1 else key for key, name in short.items()}


def _distribution(declared: Any, labels: Sequence[str]) -> BaseDistribution | None:
    node = declared if isinstance(declared, Mapping) else {}
    low, high, is_log = node.get("low"), node.get("high"), bool(node.get("log"))
    if isinstance(low, int) and isinstance(high, int):
        return IntDistribution(low, high, log=is_log)
    if isinstance(low, int | float) and isinstance(high, int | float):
        return FloatDistribution(low, high, log=is_log)
    choices = dict.fromkeys([*map(str, node.get("values", ())), *labels])
    return CategoricalDistribution(tuple(choices)) if choices else None


def _value(label: str, distribution: BaseDistribution | None) -> Any:
    if distribution is None:
        return None
    if isinstance(distribution, CategoricalDistribution):
        return label
    try:
        value = int(label) if isinstance(distribution, IntDistribution) else float(label)
    except ValueError:
        return None
    return value if distribution._contains(value) else None
