"""One YAML file as plain data: what OmegaConf would read, at libyaml's speed.

More than a hundred small files are read at every start, and OmegaConf's own loader is pure Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

_QUOTED = re.compile(r"""\"[^\"]*\"|'[^']*'""")
_TWO_KEYS = re.compile(r":\s+[^,{}\[\]]*:\s")
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
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be one word", key.start_mark)
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
        raise ValueError(f"not readable as YAML: {_place_and_hint(text, error)}") from error


def _place_and_hint(text: str, error: yaml.YAMLError) -> str:
    """Return where `text` cannot be read and why, as PyYAML says it, and what to write where that shows."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"line {text.count(chr(10), 0, error.position) + 1}: {error.reason}"
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    mark = error.problem_mark
    begun = mark if error.context_mark is None else error.context_mark
    why = str(error.problem)
    if begun.line != mark.line:
        why += f", {error.context} since line {begun.line + 1}"
    lines = text.splitlines()[begun.line : mark.line + 1]
    return f"line {mark.line + 1}, column {mark.column + 1}: {why}{_hint(lines, mark.column)}"


def _hint(lines: Sequence[str], column: int) -> str:
    """Return what to write instead, by what stands in the lines at fault outside of quotes."""
    bare = [_QUOTED.sub("", line) for line in lines]
    if any(line.lstrip(" ").startswith("\t") for line in lines):
        return "; indent with spaces, not with tabs"
    if any("${" in line for line in bare):
        return '; within {...} quote what is filled in: "${name}"'
    if any(_TWO_KEYS.search(line) for line in bare):
        return '; quote a text that holds a colon and a space: "one: two"'
    if lines and lines[-1][column : column + 1] in tuple("@`%*&!"):
        return f"; quote a text that begins with {lines[-1][column]}"
    return ""
