"""What files for the official Hydra Optuna plugin say, in the words of this one.

Most keys are the same.  Those that are not are translated where that is certain, and answered with what to
type where it is not.

Source: hydra-optuna-sweeper==1.3.0 and 1.4.0rc3, hydra_plugins/hydra_optuna_sweeper/config.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memsweep.search.grammar import label_text

_SEARCH_SPACE = "hydra.sweeper.search_space"
_LISTED = 1_000  # a longer range of integers is searched without listing it


def translated(raw: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return the fields of `hydra.sweeper` without what only the official plugin has.

    Args:
        raw: The fields, as plain data.
        problems: Told what has no translation.
    """
    data = {**raw, "params": raw.get("params") or {}, "sampler": _sampler(raw.get("sampler"))}
    legacy = data.pop("search_space", None)
    if legacy:
        if data["params"]:
            problems.append(
                f"{_SEARCH_SPACE} and hydra.sweeper.params are two words for one thing: keep params"
            )
        elif not isinstance(legacy, Mapping):
            problems.append(f"{_SEARCH_SPACE} must map keys to distributions, got {legacy!r}")
        else:
            found = {str(key): _distribution(str(key), node, problems) for key, node in legacy.items()}
            data["params"] = {key: text for key, text in found.items() if text is not None}
    if isinstance(data.get("storage"), Mapping):
        url = data["storage"].get("url") or "sqlite:///study.db"
        problems.append(
            f"hydra.sweeper.storage is a URL, and no object with a _target_: type hydra.sweeper.storage={url}"
        )
        data["storage"] = None
    return data


def _sampler(asked: Any) -> Any:
    """Return a sampler without the fields that the official plugin lists and nobody has set."""
    if not isinstance(asked, Mapping):
        return asked
    given = {key: value for key, value in asked.items() if value is not None and key != "_partial_"}
    if given.get("multivariate") is False:
        given.setdefault("group", False)  # which we set untold, and Optuna takes with multivariate only
    return given


def _distribution(key: str, node: Any, problems: list[str]) -> str | None:
    """Return a distribution of the old form in Hydra's grammar, where ends are not included."""
    where = f"{_SEARCH_SPACE}.{key}"
    kind = str(node.get("type")) if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or kind not in ("int", "float", "categorical"):
        problems.append(f"{where} must have a type of int, float or categorical, got {node!r}")
        return None
    if kind == "categorical":
        choices = node.get("choices")
        if not isinstance(choices, list) or not choices:
            problems.append(f"{where} needs a list of choices, got {node!r}")
            return None
        return ",".join(label_text(choice) for choice in choices)  # choice(null) is none in Hydra's grammar
    low, high, step = node.get("low"), node.get("high"), node.get("step")
    if not all(_is_number(number) for number in (low, high)) or not (step is None or _is_number(step)):
        problems.append(f"{where} needs low and high as numbers, and step as one if at all; got {node!r}")
        return None
    assert low is not None
    assert high is not None
    if kind == "int":
        low, high = int(low), int(high)
        if node.get("log"):
            return f"tag(log,int(interval({low},{high + 1})))"
        if step is None and high - low >= _LISTED:
            return f"int(interval({low},{high + 1}))"
        return f"range({low},{high + 1},{int(step or 1)})"
    if node.get("log"):
        return f"tag(log,interval({float(low)!r},{float(high)!r}))"
    if step is not None:
        return f"range({float(low)!r},{float(high + step / 2)!r},{float(step)!r})"
    return f"interval({float(low)!r},{float(high)!r})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
