"""One YAML file as plain data: what OmegaConf would read, at libyaml's speed.

More than a hundred small files are read at every start, and OmegaConf's own loader is pure Python.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

_Fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Fast):  # type: ignore[misc, valid-type]
    """Differs from YAML 1.1 where OmegaConf does: a key is there once, and dates are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the shape that PyYAML asks for
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in _Fast.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping at `node`.

        Raises:
            yaml.constructor.ConstructorError: If a key is there twice.
        """
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                message = f"the key {key.value} is there twice"
                raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep))


# YAML 1.1 wants a point in a number with an exponent and reads 1e-3 as text; OmegaConf does not.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(file: Path) -> Any:
    """Return what `file` holds; `${...}` stays text.

    Raises:
        ValueError: If it is not YAML, or a key is there twice; the message says where.
    """
    return parse_yaml(file.read_text(encoding="utf-8"))


def parse_yaml(text: str) -> Any:
    """Return what `text` holds; `${...}` stays text.

    Raises:
        ValueError: If it is not YAML, or a key is there twice; the message says where.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"not readable as YAML: {error}") from error
