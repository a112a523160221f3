"""Text that somebody else may have written, as it can be shown: what a terminal would obey is made visible.

A study may come from anywhere.  Escape sequences in its files would move the cursor, rename the window or
hide what stands before them, and marks of writing direction let a command read otherwise than it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# Everything below a blank but line feed and tab, DEL and the second set of controls; marks of direction, and
# the two characters that end a line for some programs only; halves of a pair, which no UTF-8 has.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")

# What JSON must hold for a text in it to hold one of these; it may hold it and mean something else.
_IN_JSON = re.compile(
    "[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    r"|\\u00(?:[01][0-9a-f]|7f|[89][0-9a-f])|\\u20[026][0-9a-f]|\\ud[89a-f][0-9a-f]{2}|\\[bfr]",
    re.IGNORECASE,
)


def visible(text: str) -> str:
    r"""Return a text with what is obeyed written out, `\x1b`; colours, which are harmless, are dropped."""
    return _OBEYED.sub(_written, _COLOUR.sub("", text)) if _OBEYED.search(text) else text


def visible_data(value: Any) -> Any:
    """Return plain data with every text in it, keys too, made visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible_data(key): visible_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [visible_data(item) for item in value]
    return value


def visible_json(text: str) -> Any:
    """Return what JSON holds, with every text in it made visible.

    Raises:
        ValueError: If it is no JSON, which has no NaN and no infinity either.
    """
    try:
        data = json.loads(text, parse_constant=_refused)
    except RecursionError as error:
        raise json.JSONDecodeError("it is nested too deep", "", 0) from error
    return visible_data(data) if _IN_JSON.search(text) else data


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number in JSON")


def _written(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
