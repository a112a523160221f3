from __future__ import annotations

from dataclasses import dataclass

import pytest

from memsweep.errors import ConfigError
from memsweep.trainers.fields import field_for, resolved

CHECKPOINTING = "activation_checkpointing|gradient_checkpointing"


@dataclass
class Older:
    """As transformers 5.17 names it."""

    gradient_checkpointing: bool = True
    max_length: int | None = None


@dataclass
class Newer:
    """As transformers 5.24 names it, with the old name as an alias."""

    activation_checkpointing: bool | None = None
    gradient_checkpointing: bool = True


def test_the_first_name_that_the_class_has_is_meant() -> None:
    assert field_for(CHECKPOINTING, Older) == "gradient_checkpointing"
    assert field_for(CHECKPOINTING, Newer) == "activation_checkpointing"


def test_settings_come_back_under_the_names_of_the_class() -> None:
    assert resolved({CHECKPOINTING: False}, Older) == {"gradient_checkpointing": False}


def test_a_name_that_no_field_has_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"Older has no field max_lenght; did you mean max_length\?"):
        field_for("max_lenght", Older)


def test_all_unknown_names_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"(?s)no field padding_free.*no field packing"):
        resolved({"padding_free": True, "packing": True}, Older)


def test_two_settings_of_one_field_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"two settings mean Older\.gradient_checkpointing"):
        resolved({CHECKPOINTING: False, "gradient_checkpointing": True}, Older)
