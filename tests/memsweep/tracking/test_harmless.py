from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memsweep.secret import MASK
from memsweep.tracking.harmless import HOST, Harmless

SECRET = "correct-horse-7-staple"


def harmless(**environment: str) -> Harmless:
    return Harmless({Path("/data/joe/outputs/first"): "outputs/first"}, {"HOME": "/home/joe", **environment})


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("HF_TOKEN", "hf_abcdefgh", MASK),
        ("api_key", "0123456789", MASK),
        ("completion_tokens", 512, 512),
        ("eos_token", "<|im_end|>", "<|im_end|>"),
        ("path", str(Path.home() / "model"), "~/model"),
        ("path", "/home/joe/model", "~/model"),
        ("path", "/home/joey/model", "/home/joey/model"),
        ("output_dir", "/data/joe/outputs/first/trials/3", "outputs/first/trials/3"),
        ("reason", "no file /home/joe.", "no file ~."),
    ],
)
def test_keys_and_places_are_told_from_settings(key: str, value: object, expected: object) -> None:
    assert harmless()({key: value}) == {key: expected}


@pytest.mark.parametrize(
    "text",
    [
        f"python train.py launch.environment.HF_TOKEN={SECRET} model=tiny",
        f"+launch.environment.API_KEY='{SECRET}'",
        f"launch:\n  environment:\n    HF_TOKEN: {SECRET}\n",
        f'{{"environment": {{"HF_TOKEN": "{SECRET}", "A": "b"}}}}',
        f"environment={{HF_TOKEN:{SECRET}}}",
    ],
)
def test_a_secret_in_a_text_is_masked_where_it_is_named(text: str) -> None:
    shown = harmless().text(text)

    assert SECRET not in shown
    assert MASK in shown


def test_what_is_beside_a_secret_stays() -> None:
    shown = harmless().text(f"python train.py environment.HF_TOKEN={SECRET} model=tiny trainer=sft")

    assert shown == f"python train.py environment.HF_TOKEN={MASK} model=tiny trainer=sft"


def test_a_secret_that_was_met_once_is_found_everywhere() -> None:
    clean = harmless()
    clean({"launch": {"environment": {"HF_TOKEN": SECRET}}})

    assert clean.known(f"<td>401 for {SECRET}</td>") == f"<td>401 for {MASK}</td>"


def test_the_environments_own_secrets_are_found_everywhere() -> None:
    assert SECRET not in harmless(SOME_API_KEY=SECRET).known(f"refused {SECRET}")


def test_an_ordinary_word_under_a_secret_name_is_not_looked_for_elsewhere() -> None:
    clean = harmless()

    assert clean({"credentials": "disabled"}) == {"credentials": MASK}
    assert clean.known("checkpointing=disabled") == "checkpointing=disabled"


def test_the_hosts_name_is_masked_as_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.uname_result(("Linux", "gpu-box-7", "6", "1", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: name)

    assert harmless().text("lost gpu-box-7.example and gpu-box-70") == f"lost {HOST}.example and gpu-box-70"


def test_the_host_goes_by_the_name_of_the_environment_too() -> None:
    assert harmless(HOSTNAME="gpu-box-7").text("on gpu-box-7: no") == f"on {HOST}: no"


def test_a_host_that_is_called_as_something_of_ours_leaves_commands_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "train", "6", "1", "x86_64")))

    assert harmless().text("python train.py") == "python train.py"


def test_lines_of_json_stay_lines_of_json() -> None:
    lines = [json.dumps({"api_key": SECRET, "path": "/home/joe/x"}), "", json.dumps([1, None])]

    assert [json.loads(line) for line in harmless().lines(lines).splitlines()] == [
        {"api_key": MASK, "path": "~/x"},
        [1, None],
    ]


def test_numbers_and_nothing_stay_what_they_are() -> None:
    value = {"a": 1, "b": 0.5, "c": None, "d": True, "e": [1, "x"]}

    assert harmless()(value) == value
