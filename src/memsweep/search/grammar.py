"""A value as the text that makes Hydra read that value again, and back.

Hydra's own parser reads everything.  A value that a sampler may choose is never anything but text until a
trial reads it: `1`, `1.0`, `true`, `'1'` and `null` stay five different things.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException

from memsweep.errors import ConfigError

_parser = OverridesParser.create()


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
