from __future__ import annotations

import pytest

from memsweep.secret import (
    MASK,
    is_secret_variable,
    masked,
    masked_override,
    masked_text,
    without_password,
)


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


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "WANDB_API_KEY", "GITHUB_TOKEN", "PGPASSWORD", "DB_PASSWORD"),
        *(
            "OPENAI_APIKEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSQL_PWD",
            "GH_PAT",
            "SSH_KEY",
            "AWS_ACCESS_KEY_ID",
        ),
    ],
)
def test_a_variable_that_is_named_like_a_secret_is_one(name: str) -> None:
    assert is_secret_variable(name)


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "PWD", "OLDPWD", "KEYBOARD", "PATH", "N_TOKENS", "HOME"]
)
def test_other_variables_are_none(name: str) -> None:
    assert not is_secret_variable(name)


@pytest.mark.parametrize(
    "said", ["failed for user me, password p%40ss", "{'password': 'p@ss'}", "at a://me:p%40ss@b"]
)
def test_what_a_driver_says_goes_without_the_urls_password(said: str) -> None:
    told = without_password(said, "postgresql://me:p%40ss@host/db")

    assert MASK in told
    assert "p%40ss" not in told
    assert "p@ss" not in told


def test_a_url_without_a_password_leaves_a_text_as_it_is() -> None:
    assert without_password("no such table", "sqlite:///study.db") == "no such table"
