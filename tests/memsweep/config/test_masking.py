from __future__ import annotations

from pathlib import Path

from hydra.core import utils
from omegaconf import OmegaConf

from memsweep.config.masking import masked_yaml, secrets_masked

URL = "postgresql://me:hunter2hunter2@host/studies"


def test_a_config_without_secrets_is_written_as_hydra_writes_it() -> None:
    config = OmegaConf.create({"a": {"b": "${c}", "pad_token": "<pad>"}, "d": ["x=1", None, 2.5], "e": "???"})

    assert masked_yaml(config) == OmegaConf.to_yaml(config)


def test_secrets_are_masked_by_name_by_form_and_within_overrides() -> None:
    config = OmegaConf.create(
        {
            "hydra": {
                "sweeper": {"storage": URL},
                "overrides": {"hydra": [f"hydra.sweeper.storage='{URL}'"], "task": ["+x.api_key=abcdefgh"]},
            },
            "hf_token": "abcdefgh",
            "kept": "${oc.env:HOST}",
        }
    )

    text = masked_yaml(config)
    read = OmegaConf.create(text)

    assert "hunter2" not in text
    assert "abcdefgh" not in text
    assert read.hydra.sweeper.storage == "postgresql://me:***@host/studies"
    assert read.hydra.overrides.task == ["+x.api_key=***"]
    assert OmegaConf.to_container(read)["kept"] == "${oc.env:HOST}"  # type: ignore[call-overload]


def test_what_hydra_saves_beside_a_run_is_masked(tmp_path: Path) -> None:
    with secrets_masked():
        utils._save_config(
            OmegaConf.create([f"hydra.sweeper.storage={URL}"]), "overrides.yaml", tmp_path / "a"
        )
    utils._save_config(OmegaConf.create({"a": 1}), "config.yaml", tmp_path / "a")

    assert "hunter2" not in (tmp_path / "a" / "overrides.yaml").read_text(encoding="utf-8")
    assert (tmp_path / "a" / "config.yaml").read_text(encoding="utf-8") == "a: 1\n"
