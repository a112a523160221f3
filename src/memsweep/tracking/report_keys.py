"""Which keys of runs does a report in W&B refer to?

Read from its spec, the form that W&B is sent, so that nothing on the way to it can add a key unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memsweep.tracking.logged import Logged

_SUMMARY = re.compile(r"summary:(.+)")
_CONFIG = re.compile(r"config:([^.]+)\.value\.(.+)")
_TEXT = "content"
"""Where a spec holds what people read."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What a report refers to.

    Attributes:
        summary: Keys of the trials' summaries.
        config: Keys of the trials' configs, levels separated by dots.
        study: Keys of the rows of the study's run.
        tables: Keys of the study's tables and pictures.
    """

    summary: set[str] = field(default_factory=set)
    config: set[str] = field(default_factory=set)
    study: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)

    def unlogged(self, logged: Logged) -> list[str]:
        """Return those that no run has."""
        pairs = (
            (self.summary, logged.summary),
            (self.config, logged.config),
            (self.study, logged.study),
            (self.tables, logged.tables),
        )
        return sorted(key for wanted, there in pairs for key in wanted - there)


def keys_of(spec: Mapping[str, Any]) -> Keys:
    """Return the keys that a report's spec refers to."""
    keys = Keys()
    for node in _nodes(spec):
        if node.get("section") == "summary":
            keys.summary.add(node["name"])
        config = node.get("config", {})
        match node.get("viewType"):
            case "Parameter Importance":
                keys.summary.add(config["targetKey"])
            case "Run History Line Plot":
                keys.study.update([config["xAxis"], *config["metrics"]])
            case "Weave":
                keys.tables.add(config["panel2Config"]["exp"]["fromOp"]["inputs"]["key"]["val"])
        for name, value in node.items():
            if isinstance(value, str) and name != _TEXT:
                if found := _SUMMARY.fullmatch(value):
                    keys.summary.add(found[1])
                if found := _CONFIG.fullmatch(value):
                    keys.config.add(f"{found[1]}.{found[2]}")
    return keys


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping, however deep."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)
