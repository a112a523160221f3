from __future__ import annotations

import pytest

from memsweep.secret import MASK, masked, masked_override, masked_text


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "api_key", "apikey", "launch.environment.WANDB_API_KEY", "password"]
)
def test_a_value_that_is_named_like_a_secret_is_not_shown(name: str) -> None:
    assert masked("abc", name) == MASK


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("completion_tokens", "abc"),
        ("pad_token", "<pad>"),
        ("mask_token", "[MASK]"),
        ("hub_token", "${oc.env:HF_TOKEN}"),
        ("token", 7),
        ("token", None),
    ],
)
def test_what_is_no_secret_is_shown(name: str, value: object) -> None:
    assert masked(value, name) == value


def test_a_reference_with_a_secret_to_fall_back_on_is_not_shown() -> None:
    assert masked("${oc.env:HF_TOKEN,abcdefgh}", "hub_token") == MASK


def test_secrets_within_lists_and_mappings_are_found() -> None:
    assert masked([{"user": "me", "password": "x"}]) == [{"user": "me", "password": MASK}]


def test_a_password_within_a_url_is_not_shown() -> None:
    assert masked("postgresql://me:pw@host/db", "storage") == f"postgresql://me:{MASK}@host/db"


def test_a_services_key_is_not_shown_wherever_it_is() -> None:
    assert masked_text("refused hf_abcdefghijklmnopqrstuvwx twice") == f"refused {MASK} twice"


def test_an_override_keeps_its_key() -> None:
    assert masked_override("+launch.environment.HF_TOKEN=abc") == f"+launch.environment.HF_TOKEN={MASK}"
    assert masked_override("technique/adapter=lora") == "technique/adapter=lora"
